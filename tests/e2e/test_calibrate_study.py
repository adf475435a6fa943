"""Studies that calibrate a classifier over their sites, all parties in one process."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager

import pytest

from tests.calibration_worlds import simulated
from tests.e2e.command import FILES, run, write
from tests.e2e.test_naive_bayes_study import deployment
from vertibayes.calibration.models import to_naive_bayes
from vertibayes.cli import calibrate_study
from vertibayes.cli.calibrate_study import read_calibration
from vertibayes.cli.deployment import _keep
from vertibayes.contract import steps_of_contract
from vertibayes.network import read_model
from vertibayes_protocols.deployment.files import SiteFile, StudyFile, own_keys
from vertibayes_protocols.deployment.running import site_role
from vertibayes_protocols.parties import serve
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import Session
from vertibayes_protocols.transports.local import LocalTransport

SITES = dict.fromkeys(("one", "two", "three"), ("a", "b", "c", "y"))
SUMMED = "exact_sums = true"
SHOWN = "exact_sums = true\nexact_neighbours = true"
STUDY = """
[states]
y = ["no", "yes"]
a = ["u", "v"]
b = ["u", "v"]

[network]
kind = "complete"

[learning]
learner = "calibration"
target = "y"
rounds = 5
most_records = 200
rounds_per_part = 3
"""


@pytest.fixture
def away():
    """The sites that are away in each session, which a test fills."""
    return []


@pytest.fixture
def sites(monkeypatch, away):
    """Have the sessions of a study run all sites from their files; return the sites' roles."""
    roles = {}

    @contextmanager
    def sessions(file, *_):
        folder = file.source.path.parent.parent
        role = AnalystRole(
            file.party, public_keys=dict(file.pinned), signing_keys=dict(file.signing),
            keys=own_keys(file),
        )  # fmt: skip

        @contextmanager
        def open_session():
            absent = frozenset(away.pop(0) if away else ())
            there = {site: own for site, own in roles.items() if site not in absent}
            programs = {site: serve(own, file.party, KINDS) for site, own in there.items()}
            with Session(role, LocalTransport(file.party, programs)) as session:
                yield session, absent

        with ExitStack() as held:
            for site in file.sites:
                own = SiteFile.read(folder / site / "site.toml")
                roles[site] = held.enter_context(site_role(own, steps_of_contract))
            yield open_session

    monkeypatch.setattr("vertibayes.cli.machines.record_sessions", sessions)
    return roles


def learn(capsys, study, out, *options):
    code, shown, error = run(capsys, "learn", study, "--out", out, *options)
    return code, shown, error


@pytest.mark.parametrize(
    ("policy", "settings", "words"),
    [
        (SUMMED, "", ("mean, start data", "neighbours see sums over their neighbourhoods")),
        (SHOWN, "shown = true", ("relay, start data", "neighbours see each other's statistics")),
    ],
)
def test_sites_reach_the_model_of_the_simulation(capsys, tmp_path, sites, policy, settings, words):
    study = deployment(tmp_path / "all", SITES, policy, STUDY + settings)
    code, shown, error = learn(capsys, study, tmp_path / "out")
    assert code == 0, error
    assert all(word in shown for word in words) and error == ""
    written = {path.name for path in (tmp_path / "out").iterdir()}
    learned = FILES - {"counts.json"}
    assert written == learned | {
        "network.json", "network.svg", "calibration.json", "calibration.svg",
    }  # fmt: skip
    read = read_calibration(StudyFile.read(study))
    held = {site: own.data.local for site, own in sites.items()}
    steps = simulated(read.agreed, held, 5)
    trace = json.loads((tmp_path / "out" / "calibration.json").read_text())
    assert [row["errors"] for row in trace["rounds"]] == [step.errors.sum() for step in steps]
    losses = [step.soft.sum() / 360 for step in steps]  # per record of the three sites
    assert [row["soft_loss"] for row in trace["rounds"]] == pytest.approx(losses, abs=1e-5)
    assert [part["first"] for part in trace["parts"]] == [1, 4]
    model = to_naive_bayes(read.agreed.classifier, read.schema, steps[-1].statistics.mean(axis=0))
    cpts = read_model(tmp_path / "out" / "model.bif").cpts
    for name, cpt in model.to_network().cpts.items():
        assert cpts[name] == pytest.approx(cpt, abs=1e-5)  # sums are on a grid


def test_a_network_of_states_is_calibrated_and_tested(capsys, tmp_path, sites):
    edges = [["y", "a"], ["y", "b"], ["a", "b"]]
    structure = tmp_path / "tree.json"
    structure.write_text(json.dumps({"nodes": ["y", "a", "b"], "edges": edges}))
    test = write(tmp_path / "new.csv", ["y", "a", "b"], [["no", "u", "u"], ["yes", "v", "v"]])
    more = f'structure = "{structure}"\ntest = "{test}"\nshown = true'
    settings = STUDY.replace('kind = "complete"', 'edges = [["one", "two"], ["three", "two"]]')
    study = deployment(tmp_path / "all", SITES, SHOWN, settings + more)
    code, shown, error = learn(capsys, study, tmp_path / "out")
    assert code == 0, error
    assert "error on 2 test records: 0.0000" in shown
    assert read_model(tmp_path / "out" / "model.bif").structure.parents["b"] == ("y", "a")
    network = json.loads((tmp_path / "out" / "network.json").read_text())
    assert network["edges"] == [["one", "two"], ["three", "two"]]


def test_a_site_writes_its_own_classifier_which_predicts(capsys, tmp_path):
    study = deployment(tmp_path / "all", SITES, SHOWN, STUDY)
    agreed = read_calibration(StudyFile.read(study)).agreed
    folder = tmp_path / "calibration-7"
    _keep(folder, agreed.spec, agreed.classifier.uniform(1.0))
    test = write(tmp_path / "new.csv", ["a", "b"], [["u", "v"]])
    options = ("--model", folder / "model.json", "--data", test, "--target", "y")
    with pytest.raises(FileExistsError):  # no later query replaces it
        _keep(folder, agreed.spec, agreed.classifier.uniform(1.0))
    assert run(capsys, "predict", *options, "--out", tmp_path / "o.csv")[0] == 0
    assert read_model(folder / "model.bif").cpts["y"] == pytest.approx([0.5, 0.5])


def test_sites_that_were_away_are_named(capsys, tmp_path, sites, away):
    study = deployment(tmp_path / "all", SITES, SHOWN, STUDY + 'shown = true\nmixing = "mean"')
    away[:] = [(), ["three"]]
    code, shown, error = learn(capsys, study, tmp_path / "out")
    expected = "warning: away in rounds 4 to 5: three; sums over one, two alone\n"
    assert (code, error) == (0, expected)
    assert shown.startswith("240 records at 2 (one, two) of 3 sites")
    facts = json.loads((tmp_path / "out" / "ledger.json").read_text())["revealed"]
    whole, rest = (fact["what"] for fact in facts)
    assert "naive Bayes of y from a, b (mixing mean, start data)" in whole
    assert "sums over 3 of 3 sites (one, three, two)" in whole and "rounds 1 to 3" in whole
    assert "sums over 2 of 3 sites (one, two; without three)" in rest and "4 to 5" in rest
    trace = json.loads((tmp_path / "out" / "calibration.json").read_text())
    assert [row["records"] for row in trace["rounds"]] == [360] * 3 + [240] * 2
    assert trace["parts"][1]["absent"] == ["three"]


def test_the_ledger_of_a_calibration_that_fails_is_kept(capsys, tmp_path, sites, away):
    study = deployment(tmp_path / "all", SITES, SHOWN, STUDY + "shown = true")
    away[:] = [(), ["two", "three"]]
    code, _, error = learn(capsys, study, tmp_path / "out", "--quiet")
    path = tmp_path / "out" / "ledger.json"
    assert code == 2 and f"warning: what was revealed before the run failed: {path}\n" in error
    assert "rounds 1 to 3" in path.read_text()


def test_the_ledger_of_a_study_whose_report_fails_is_kept(capsys, tmp_path, sites, monkeypatch):
    def fail(*_, **__):
        raise ValueError("no report")

    monkeypatch.setattr(calibrate_study, "finish", fail)
    study = deployment(tmp_path / "all", SITES, SUMMED, STUDY)
    assert learn(capsys, study, tmp_path / "out", "--quiet")[0] == 2
    assert "rounds 4 to 5" in (tmp_path / "out" / "ledger.json").read_text()


@pytest.mark.parametrize(
    ("columns", "rows", "reason"),
    [
        (["a", "b"], [["u", "v"]], "no column 'y', the target"),
        (["y", "a"], [["no", "u"]], "no column 'b', a feature"),
        (["y", "a", "b"], [["", "u", "v"]], "no record to test on has a y"),
        (None, None, "no such file"),
    ],
)
def test_test_records_are_read_before_a_site_is_asked(
    capsys, tmp_path, sites, columns, rows, reason
):
    if columns:
        write(tmp_path / "records.csv", columns, rows)
    test = f'test = "{tmp_path / "records.csv"}"'
    study = deployment(tmp_path / "all", SITES, SUMMED, STUDY + test)
    code, _, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and "learning.test: " in error and reason in error.lower(), error
    assert not sites and not (tmp_path / "out").exists()
    assert reason in run(capsys, "check", study)[1].lower()


@pytest.mark.parametrize("policy", ["", SUMMED])
def test_a_site_that_does_not_allow_it_refuses(capsys, tmp_path, sites, policy):
    study = deployment(tmp_path / "all", SITES, policy, STUDY + "shown = true")
    code, _, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and ("exact_neighbours" if policy else "exact_sums") in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"most_records = 200": ""}, "learning.most_records: missing; expected a whole number"),
        ({'kind = "complete"': ""}, "network: specify kind or edges"),
        ({'kind = "complete"': 'kind = "chain"\nedges = [["one", "two"]]'}, "kind or edges"),
        ({'kind = "complete"': 'kind = "grid"'}, "network.kind: must be chain, ring, star or"),
        ({'kind = "complete"': 'edges = [["one", "one"]]'}, "network.edges: must be a list of"),
        ({'kind = "complete"': 'edges = [["one", "two"]]'}, "no path between one and three"),
        ({'kind = "complete"': 'edges = [["one", "four"]]'}, "four is not a node"),
        ({'kind = "complete"': 'kind = "chain"'}, "the node one has one neighbour, two"),
        ({"rounds = 5": 'mixing = "relay"'}, "learning.mixing: a relay shows statistics"),
        ({"rounds = 5": "shown = true\nsize = 3"}, "learning.size: a relay does not use it"),
        ({"rounds = 5": "holdout = 0.1"}, "learning.holdout: the records lie at the sites"),
        ({"rounds = 5": "nodes = 5"}, "learning.nodes: unknown key"),
        ({"rounds = 5": 'structure = "no.json"'}, "learning.structure"),
        ({'target = "y"': 'target = "q"'}, "learning.target: 'q' is not among y, a, b"),
        ({"[network]": "[class_counts]\nno = 1\n[network]"}, "class_counts: calibration does"),
        (
            {"[network]": '[validation]\ntarget = "y"\n[network]'},
            "validation: calibration does",
        ),
        ({'learner = "calibration"': 'learner = "naive_bayes"'}, "network: naive_bayes does not"),
    ],
)
def test_check_and_learn_refuse_settings_that_do_not_fit(capsys, tmp_path, changes, reason):
    settings = STUDY
    for old, new in changes.items():
        settings = settings.replace(old, new)
    study = deployment(tmp_path / "all", SITES, SUMMED, settings)
    code, _, error = learn(capsys, study, tmp_path / "out")
    assert code == 2 and reason in error and not (tmp_path / "out").exists()
    _, shown, _ = run(capsys, "check", study)
    assert reason in shown


@pytest.mark.parametrize(
    ("policy", "changes", "reason"),
    [
        ("", {}, "its policy does not set exact_sums"),
        (SUMMED, {"rounds = 5": "shown = true"}, "its policy does not set exact_neighbours"),
        (SHOWN, {"most_records = 200": "most_records = 119"}, "more records than the 119 agreed"),
        (SHOWN, {'b = ["u", "v"]': 'b = ["u", "w"]'}, "one refuses: "),
        (SUMMED, {}, None),
    ],
)
def test_check_compares_a_study_with_the_files_of_its_sites(
    capsys, tmp_path, policy, changes, reason
):
    settings = STUDY
    for old, new in changes.items():
        settings = settings.replace(old, new)
    study = deployment(tmp_path / "all", SITES, policy, settings)
    code, shown, _ = run(capsys, "check", study, *(tmp_path / "all").glob("*/site.toml"))
    if reason is None:
        assert code == 0 and "one: takes part in the calibration of" in shown
    else:
        assert code == 2 and reason in shown, shown
