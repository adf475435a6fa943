"""examples/notebook.py runs from its first cell to its last, and writes what it says."""

import json
import runpy

import pytest

from tests.documents import ROOT
from vertibayes import read_model

NOTEBOOK = ROOT / "examples" / "notebook.py"
EDGES = {
    frozenset(pair)
    for pair in (
        ("age", "pressure"), ("smoker", "infarct"), ("pressure", "infarct"), ("smoker", "cough")
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        names = runpy.run_path(str(NOTEBOOK), run_name="__main__")
    return folder / "notebook", names


def test_the_notebook_learns_the_relations_that_it_has_invented(written):
    _, names = written
    for network in (names["network"], names["cut"]):
        assert {frozenset(edge) for edge in network.structure.edges} == EDGES
    risks = names["risks"]["yes"]
    assert risks.iloc[0] > risks.iloc[1] > risks.iloc[2]
    assert names["validation"].overall.auc > 0.7


def test_the_notebook_hands_over_the_network_and_writes_the_report(written):
    folder, names = written
    assert (folder / "network.svg").read_text().startswith("<svg")
    assert set(names["model"].edges()) == set(names["cut"].structure.edges)
    for name in ("model.json", "model.bif", "model.bifxml"):
        assert set(read_model(folder / name).structure.edges) == set(names["cut"].structure.edges)
    page = (folder / "results" / "report.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert all(name in page for name in ("pressure", "infarct", "smoker", "cough", "age"))
    summary = json.loads((folder / "results" / "summary.json").read_text())
    assert summary["records"] == 2000 and (folder / "results" / "release").is_dir()


def test_the_cells_are_those_of_a_notebook():
    text = NOTEBOOK.read_text()
    assert text.startswith("# %% [markdown]\n# # ")
    assert text.count("\n# %%\n") >= 10 and text.count("# %% [markdown]") >= 9
