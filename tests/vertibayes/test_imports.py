"""What a module loads: no circle of files, and no cryptography for pooled data."""

import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None
import numpy as np
from vertibayes import Family, PlainCounter, SiteData, Variable
data = SiteData({"x": Variable("x", ("a", "b"))}, {"x": np.array([0, 1, 0], np.uint8)})
assert PlainCounter(data).tables([Family("x")])[0].tolist() == [2, 1]
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("vertibayes_mpc", "vertibayes_protocols", "vertibayes", cache_dir=None)


def sort(graph, *more):
    """Put the files in an order in which each imports only earlier ones, if there is one."""
    sorter = TopologicalSorter()
    for module in graph.modules:
        sorter.add(module, *graph.find_modules_directly_imported_by(module))
    for importer, imported in more:
        sorter.add(importer, imported)
    sorter.prepare()


def test_no_files_import_each_other_in_a_circle(graph):
    sort(graph)


def test_an_import_upwards_would_close_a_circle(graph):
    with pytest.raises(CycleError):
        sort(graph, ("vertibayes_protocols.approval", "vertibayes_protocols.session"))


def test_counting_pooled_data_needs_neither_fcntl_nor_cryptography_nor_a_session():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_FCNTL], stdout=subprocess.PIPE, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert {name for name in loaded if name.split(".")[0] == "vertibayes_mpc"} <= {
        "vertibayes_mpc",
        "vertibayes_mpc.errors",
        "vertibayes_mpc.prefixed",
    }
    sessions = (
        "vertibayes_protocols.session",
        "vertibayes_protocols.queries",
        "vertibayes_protocols.roles",
        "cryptography",
    )
    assert not {name for name in loaded if name.startswith(sessions)}
    assert "vertibayes.counting.plain" in loaded


def test_nothing_imports_the_estimators_which_need_the_extra_sklearn(graph):
    estimators = {name for name in graph.modules if name.startswith("vertibayes.sklearn")}
    assert "vertibayes.sklearn.nodes" in estimators
    for module in graph.modules - estimators:
        assert not graph.find_modules_directly_imported_by(module) & estimators, module


HEAVY = (
    "cryptography",
    "pandas",
    "pgmpy",
    "scipy",
    "vertibayes.learning",
    "vertibayes.network",
    "vertibayes_mpc.commitments",
    "vertibayes_protocols.queries",
    "vertibayes_protocols.session",
)
LEARN = "learn", "--data", "d.csv", "--sites", "2", "--out", "out"


@pytest.mark.parametrize(
    ("arguments", "reason", "more"),
    [
        ((*LEARN, "--max-parents", "-1"), "--max-parents must be", ("numpy",)),
        ((*LEARN, "--constraints", "no.json"), "no.json: no such file", ("numpy",)),
        ((*LEARN[:-1], "d.csv"), "d.csv is not a folder", ("numpy",)),
        (("learn", "no.toml", "--out", "out"), "no.toml: no such file", ("numpy",)),
        (("site", "no.toml"), "no.toml: no such file", ("numpy",)),
        (("demo", "--sites", "0"), "--sites must be", ("numpy",)),
        ((*LEARN[:2], "no.csv", *LEARN[3:]), "no.csv: no such file", ()),
        ((*LEARN, "--exclude", "q"), "--exclude q: no such column; there are a, b", ()),
        (
            (*LEARN, "--validate", "scv", "--target", "q"),
            "--target q: no such column; there are a, b",
            (),
        ),
        ((*LEARN, "--most-bits", "5"), "--most-bits limits what the winners of choices", ()),
        ((*LEARN, "--algorithm", "tan"), "--algorithm tan needs --class-variable", ()),
        (("check", "no.toml"), "no.toml: no such file", ("numpy",)),
        (("predict", "--study", "no.toml", "--out", "o"), "no.toml: no such file", ("numpy",)),
        (("calibrate", "--data", "d.csv", "--target", "q", "--out", "o"), "q: no such column", ()),
    ],
)
def test_a_mistake_is_named_before_anything_heavy_is_imported(tmp_path, arguments, reason, more):
    """The second record is broken, which nobody who reads the columns alone can see."""
    (tmp_path / "d.csv").write_text("a,b\n0,x\n1\n")
    code = (
        "import sys\nfrom vertibayes.cli import main\n"
        f"try:\n    main({list(arguments)})\nexcept SystemExit:\n    print(*sys.modules)"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert reason in ran.stderr
    loaded = ran.stdout.split()
    assert "vertibayes.cli.app" in loaded
    assert not {name for name in loaded if name.startswith((*HEAVY, *more))}
