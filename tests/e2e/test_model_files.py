"""The model files of a run, read back and predicted from."""

import pytest

from tests.e2e.command import learn, predict, write
from vertibayes import read_model

ROWS = [["<18", "yes no", "0"], ["18-64.5", "a,b", "1"], ["65+", "yes no", "0"]] * 12
HEADER = ["age (years)", "Sex", "sick"]


@pytest.fixture
def learned(capsys, tmp_path):
    data = write(tmp_path / "data.csv", HEADER, ROWS)
    assert learn(capsys, tmp_path / "out", "--data", data, "--sites", "2")[0] == 0
    return tmp_path


def test_all_model_files_of_a_run_predict_alike(capsys, learned):
    new = write(learned / "new.csv", HEADER[:2], [row[:2] for row in ROWS[:3]])
    found = {}
    for ending in ("json", "bif", "bifxml"):
        model, out = learned / "out" / f"model.{ending}", learned / f"{ending}.csv"
        network = read_model(model)
        assert network.variables["age (years)"].states == ("<18", "18-64.5", "65+")
        arguments = ["--model", model, "--data", new, "--target", "sick", "--out", out]
        assert predict(capsys, *arguments) == (0, "")
        found[ending] = out.read_text()
    assert found["json"] == found["bif"] == found["bifxml"]
    assert [line[0] for line in found["json"].splitlines()[1:]] == ["0", "1", "0"]


@pytest.mark.parametrize("name", ["model.json", "model.bif", "model.bifxml"])
def test_a_malformed_model_is_one_error(capsys, learned, name):
    model = learned / "out" / name
    model.write_text(model.read_text()[:200])
    code, error = predict(
        capsys, "--model", model, "--data", learned / "data.csv", "--target", "sick",
        "--out", learned / "p.csv",
    )  # fmt: skip
    assert code == 2 and error.count("\n") == 1
    assert f"{model}: not a valid " in error
    assert not (learned / "p.csv").exists()
