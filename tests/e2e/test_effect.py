"""``vertibayes effect``, and the commands of docs/effects.md as they are written."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.command import run, write
from vertibayes import Network, PlainCounter, SiteData
from vertibayes.dag import Structure
from vertibayes_protocols.variables import Variable

PAGE = (Path(__file__).parents[2] / "docs" / "effects.md").read_text()


@pytest.fixture
def patients(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    old = generator.random(5000) < 0.4
    smokes = generator.random(5000) < np.where(old, 0.6, 0.2)
    ill = generator.random(5000) < 0.05 + 0.1 * smokes + 0.2 * old
    words = [
        np.where(old, "old", "young"), np.where(smokes, "yes", "no"), np.where(ill, "yes", "no")
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "order.json").write_text('["age", "smoke", "lung"]')
    return write(tmp_path / "patients.csv", ["age", "smoke", "lung"], zip(*words, strict=True))


def test_the_page_on_effects_runs_as_it_is_written(patients, capsys):
    import pandas as pd

    blocks = re.findall(r"(?ms)^```\n(.*?)^```$", PAGE)
    outputs = []
    for command in "".join(blocks).splitlines():
        code, out, _ = run(capsys, *shlex.split(command)[1:])
        assert code == 0
        outputs.append(out)
    assert len(outputs) == 4
    shown = re.search(r"(?m)^(?:    .*\n)+", PAGE)[0]
    assert outputs[1].startswith(shown.replace("\n    ", "\n").removeprefix("    "))
    assert outputs[2].endswith(outputs[3]) and outputs[3].startswith("P(lung=yes | do(smoke)):")
    assert "revealed to the analyst: 1 table, 8 cells, and nothing else" in outputs[3]
    counter = PlainCounter(SiteData.from_frame(pd.read_csv(patients)))
    names = {"counter": counter}
    (code,) = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE)
    exec(compile(code, "docs/effects.md", "exec"), names)
    assert f"ratio {names['effect'].ratio('yes', 'yes', 'no'):.3f}" in outputs[3]


def test_a_set_that_the_network_does_not_accept_causes_a_warning(patients, capsys):
    data = ["--data", patients, "--sites", 3]
    run(capsys, "learn", *data, "--ordering", "order.json", "--out", "results", "--quiet")
    asked = ["effect", "--model", "results/model.json", "--exposure", "smoke", "--outcome", "lung"]
    code, out, error = run(capsys, *asked, "--adjust", "none", *data)
    assert code == 0 and "not adjusted" in out
    assert "--adjust is not valid by the network: a back-door path between smoke and lung" in error
    code, _, error = run(capsys, *asked, "--not-adjust", "age", *data)
    assert code == 2 and "no adjustment set without age separates" in error


def test_an_outcome_that_causes_the_exposure_is_named(patients, capsys):
    data = ["--data", patients, "--sites", 3]
    run(capsys, "learn", *data, "--ordering", "order.json", "--out", "results", "--quiet")
    asked = ["effect", "--model", "results/model.json", "--exposure", "lung", "--outcome", "age"]
    code, out, _ = run(capsys, *asked)
    assert code == 0 and "by the network, lung does not cause age" in out
    assert "no set is valid" in out and "difference +0.0000  ratio 1.000" in out
    code, _, error = run(capsys, *asked, *data)
    assert code == 2 and "age is a cause of lung in the network: swap --exposure" in error


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """Smoking makes ill: the difference is .3, and the arrow is reversible."""
    generator = np.random.default_rng(360)
    smokes = generator.random(5000) < 0.4
    ill = generator.random(5000) < 0.2 + 0.3 * smokes
    words = [np.where(smokes, "yes", "no"), np.where(ill, "yes", "no")]
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "pairs.csv", ["smoke", "ill"], zip(*words, strict=True))


ASKED = ["effect", "--exposure", "smoke", "--outcome", "ill=yes"]
UNDECIDED = "the data do not say whether smoke causes ill or ill causes smoke"


@pytest.mark.parametrize("by_tables", [False, True])
def test_a_direction_that_data_do_not_show_gives_a_range(pairs, capsys, by_tables):
    data = ["--data", pairs, "--sites", 2]
    run(capsys, "learn", *data, "--out", "results", "--quiet")
    asked = [*ASKED, "--model", "results/model.json", *(data if by_tables else [])]
    code, out, _ = run(capsys, *asked)
    assert code == 0 and out.startswith(UNDECIDED) and "--constraints or --ordering" in out
    if not by_tables:
        shown = re.findall(r"(?m)^(?:    .*\n)+", PAGE)[1]
        assert out.startswith(shown.replace("\n    ", "\n").removeprefix("    "))
    assert re.search(r"difference between \+0\.0000 and \+0\.300\d  ratio between 1.000", out)
    assert "does not cause" not in out and "adjustment sets" not in out
    assert ("Each 95 % interval covers those of all effects" in out) == by_tables
    assert ("no interval: a model has no counts" in out) != by_tables
    _, _, error = run(capsys, *ASKED, "--model", "results/model.json", *data, "--adjust", "none")
    assert f"--adjust is valid for some directions only, and {UNDECIDED}" in error


@pytest.mark.parametrize("option", ["--constraints", "--ordering"])
@pytest.mark.parametrize("late", [False, True], ids=["learn", "effect"])
def test_a_direction_that_experts_fixed_is_not_asked_for(pairs, capsys, option, late):
    Path("known.json").write_text(
        '["smoke", "ill"]' if option == "--ordering" else '{"tiers": [["smoke"], ["ill"]]}'
    )
    known, data = [option, "known.json"], ["--data", pairs, "--sites", 2]
    _, learned, _ = run(capsys, "learn", *data, "--out", "results", *([] if late else known))
    arrows = "arrows: 1 reversible" if late else "arrows: 1 fixed by what experts know"
    assert arrows in learned
    asked = ["--model", "results/model.json", *(known if late else [])]
    code, out, _ = run(capsys, *ASKED, *asked)
    assert code == 0 and "adjustment sets by the network: none is needed" in out
    assert re.search(r"  yes  0\.501\d  difference \+0\.300\d  ratio 2\.49", out)
    _, out, _ = run(capsys, *ASKED, *asked, *data)
    assert re.search(r"95 %: [.\d]+ to [.\d]+  difference \+0\.27\d\d to \+0\.32\d\d", out)
    _, out, _ = run(capsys, "effect", "--exposure", "ill", "--outcome", "smoke", *asked)
    assert "by the network, ill does not cause smoke" in out and "difference +0.0000" in out


def test_knowledge_that_contradicts_the_model_is_refused(pairs, capsys):
    Path("known.json").write_text('["smoke", "ill"]')
    Path("other.json").write_text('["ill", "smoke"]')
    data = ["--data", pairs, "--sites", 2, "--ordering", "known.json", "--out", "results"]
    run(capsys, "learn", *data, "--quiet")
    code, _, error = run(
        capsys, *ASKED, "--model", "results/model.json", "--ordering", "other.json"
    )
    assert code == 2 and "both ill -> smoke and smoke -> ill are given" in error


BOTH = "the model has the edge ill - smoke, and both its directions are ruled out: "


@pytest.mark.parametrize(
    ("known", "reasons"),
    [
        (
            '{"forbidden": [["smoke", "ill"], ["ill", "smoke"]]}',
            [BOTH, "smoke -> ill contradicts the forbidden edge smoke -> ill"],
        ),
        (
            '{"roots": ["smoke", "ill"]}',
            [BOTH, "smoke -> ill contradicts the root ill", "ill -> smoke contradicts the root"],
        ),
        (
            '{"leaves": ["smoke"], "tiers": [["smoke"], ["ill"]]}',
            [BOTH, "the leaf smoke", "ill -> smoke contradicts the tiers, in which smoke is"],
        ),
        (
            '{"required": [["age", "ill"]]}',
            ["age -> ill is required, and the model has no edge between age and ill"],
        ),
    ],
    ids=["forbidden", "roots", "leaves", "required"],
)
@pytest.mark.parametrize("exposure", ["smoke", "age"])  # the edge may be of other variables
def test_knowledge_that_no_direction_keeps_is_refused(
    tmp_path, monkeypatch, capsys, known, reasons, exposure
):
    cpts = {"ill": [0.4, 0.6], "smoke": [[0.7, 0.2], [0.3, 0.8]], "age": [0.5, 0.5]}
    structure = Structure.of(["ill", "smoke", "age"], [("ill", "smoke")])
    variables = {name: Variable(name, ("no", "yes")) for name in structure.nodes}
    monkeypatch.chdir(tmp_path)
    Network(structure, variables, {n: np.array(c) for n, c in cpts.items()}).save("model.json")
    Path("known.json").write_text(known)
    asked = ["effect", "--exposure", exposure, "--outcome", "ill", "--model", "model.json"]
    code, out, error = run(capsys, *asked, "--constraints", "known.json")
    assert code == 2 and out == "" and all(reason in error for reason in reasons)
    assert error.startswith("vertibayes: --constraints or --ordering: ") and error.count("\n") == 1


def test_an_ordering_and_tiers_that_contradict_each_other_are_refused(pairs, capsys):
    Path("order.json").write_text('["smoke", "ill"]')
    Path("tiers.json").write_text('{"tiers": [["ill"], ["smoke"]]}')
    run(capsys, "learn", "--data", pairs, "--sites", 2, "--out", "results", "--quiet")
    known = ["--ordering", "order.json", "--constraints", "tiers.json"]
    code, out, error = run(capsys, *ASKED, "--model", "results/model.json", *known)
    assert code == 2 and out == "" and "both its directions are ruled out" in error
    assert "the forbidden edge smoke -> ill" in error and "in which smoke is before ill" in error


@pytest.mark.parametrize(
    ("release", "said"),
    [
        (["laplace", "--epsilon", "0.05"], "Laplace noise, epsilon 0.05 for all tables together"),
        (["cut", "--fewest", "15"], "counts below 15 as 0"),
        (["exact"], None),
        (None, None),
    ],
)
def test_the_release_of_a_model_is_named(pairs, capsys, release, said):
    data = ["--data", pairs, "--sites", 2, "--out", "results", "--quiet"]
    code, _, _ = run(capsys, "learn", *data, *(["--release", *release] if release else []))
    assert code == 0
    code, out, _ = run(capsys, *ASKED, "--model", "results/model.json")
    line = f"The model's tables were released with {said} (summary.json): the risks"
    assert code == 0 and (line in out) == (said is not None) == ("released with" in out)


def test_the_promise_of_a_naive_bayes_model_is_named(pairs, capsys):
    options = ["--target", "ill", "--method", "hdpnb", "--parties", "6", "--epsilon", "1"]
    assert run(capsys, "nb", "--data", pairs, *options, "--out", "results", "--quiet")[0] == 0
    code, out, _ = run(capsys, *ASKED, "--model", "results/model.json")
    sentence = json.loads(Path("results/summary.json").read_text())["promise"]["sentence"]
    assert code == 0 and f"{sentence} The risks and ratios can be noise." in out


@pytest.mark.parametrize("content", ["{}", "[1]", "{", '{"release": null}', '{"promise": 1}'])
def test_another_summary_beside_a_model_is_ignored(pairs, capsys, content):
    run(capsys, "learn", "--data", pairs, "--sites", 2, "--out", "results", "--quiet")
    Path("results/summary.json").write_text(content)
    code, out, _ = run(capsys, *ASKED, "--model", "results/model.json")
    assert code == 0 and "released with" not in out


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_records_that_are_alone_in_a_revealed_cell_cause_a_warning(tmp_path, capsys, alone):
    rows = [(a, b) for a in ("no", "yes") for b in ("no", "yes") for _ in range(10)]
    rows += [(a, "perhaps") for a in ("no", "yes")[:alone]]
    data = ["--data", write(tmp_path / "d.csv", ["smoke", "ill"], rows), "--sites", 2]
    code, _, error = run(capsys, *ASKED, "--adjust", "none", *data)
    are = "is" if alone == 1 else "are"
    said = f"{alone} of {len(rows)} records ({alone / len(rows):.1%}) {are} alone in a"
    assert code == 0 and (said in error) == bool(alone) and ("alone" in error) == bool(alone)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--exposure", "smoke", "--outcome", "lung"], "specify --model FILE or --data FILE"),
        (["--exposure", "smoke", "--outcome", "lung", "DATA"], "specify --model FILE, whose"),
        (
            [
                "--exposure",
                "smoke",
                "--outcome",
                "lung",
                "--adjust",
                "none",
                "DATA",
                "--ordering",
                "order.json",
            ],
            "add --model FILE",
        ),
        (
            ["--exposure", "x", "--outcome", "y", "--sites", "3", "--count-by", "paillier"],
            "--sites, --count-by: add --data",
        ),
        (["--exposure", "q", "--outcome", "lung", "DATA"], "--exposure q: no such column"),
        (["--exposure", "smoke", "--outcome", "lung=maybe", "DATA"], "the states are no, yes"),
        (["--exposure", "smoke", "--outcome", "smoke", "--adjust", "none", "DATA"], "two variable"),
        (["--exposure", "smoke", "--outcome", "lung", "--adjust", "w", "DATA"], "--adjust w: no"),
        (["--exposure", "smoke", "--outcome", "lung", "--model", "none.json"], "none.json"),
    ],
)
def test_a_wrong_question_is_one_error(patients, capsys, arguments, reason):
    data = ["--data", patients, "--sites", 2]
    given = [text for part in arguments for text in (data if part == "DATA" else [part])]
    code, out, error = run(capsys, "effect", *given)
    assert code == 2 and out == "" and reason in error and error.count("\n") == 1


def test_columns_that_the_data_do_not_have_are_not_adjusted_for(patients, capsys):
    data = ["--data", patients, "--sites", 2]
    run(capsys, "learn", *data, "--ordering", "order.json", "--out", "results", "--quiet")
    asked = ["effect", "--model", "results/model.json", "--exposure", "smoke", "--outcome", "lung"]
    code, _, error = run(capsys, *asked, *data, "--exclude", "age")
    assert code == 2 and "no adjustment set without age separates" in error
