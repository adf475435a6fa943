"""What a study's file may say, and the mistakes in it."""

import json

import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, refused, run_in_one_process
from tests.protocols.deployment.parties import change, deployment, pooled
from vertibayes.counting import PlainCounter
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes_protocols.deployment.files import SiteFile


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = deployment(tmp_path / "all")
    run_in_one_process(monkeypatch, folder)
    return folder


def test_variables_ordering_and_options_of_the_file(capsys, folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    change(study, '# variables = ["a", "b"] ', 'variables = ["drug", "pulse", "outcome"] #')
    change(study, '# ordering = ["a", "b"] ', 'ordering = ["outcome", "pulse", "drug"] #')
    change(study, "max_parents = 3", "max_parents = 1\npseudo_count = 0.5")
    assert learn_study(capsys, folder, tmp_path / "out", "--quiet")[0] == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert list(summary["variables"]) == ["drug", "pulse", "outcome"]
    assert summary["sites"] == {"east": ["outcome"], "south": ["drug", "pulse"]}
    plain = learn(
        PlainCounter(pooled(folder).take(["drug", "pulse", "outcome"])),
        Options(ordering=["outcome", "pulse", "drug"], max_parents=1, pseudo_count=0.5),
    )
    assert summary["scores"] == plain.scores.as_json()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("max_parents = 3", "max_parent = 3", "learning.max_parent: unknown key"),
        ("max_parents = 3", "max_parents = 'x'", "learning.max_parents: must be a whole number"),
        ("max_parents = 3", "missing = 'x'", "learning.missing: must be em, synthetic, av"),
        (
            "max_parents = 3",
            "max_parents = 99",
            "learning.max_parents: must be a whole number, at least 0 and at most 20, got 99",
        ),
        (
            "max_parents = 3",
            "pseudo_count = nan",
            "learning.pseudo_count: must be a number, at least 0, got nan",
        ),
        ("max_parents = 3", "em_restarts = 1", "learning.em_restarts: em_restarts needs m"),
        ("max_parents = 3", "structure = 'none.json'", "none.json: no such file"),
        ("# [validation]", "[validation]\nfolds = 1", "validation.folds: must be a whole number"),
        ("# [validation]", "[validation]\nholdout = 1", "validation.holdout: must be a number"),
        (
            "# [validation]",
            "[validation]\nvalidate = ['cv']\ntarget = 'sex'",
            "validation.validate: must be a list of holdout, public, scv or svdg, got cv",
        ),
        (
            "# [validation]",
            "[validation]\nvalidate = ['public']\ntarget = 'sex'\npublic = 'none.csv'",
            "validation.public: ",
        ),
        (
            "# [validation]",
            "[validation]\nmethods = ['scv']",
            "validation.methods: methods is now called validate",
        ),
        ("max_parents = 3", "learner = 'x'", "learning.learner: must be bayesian_network, naive"),
        ("\n[learning]", "\n[learn]", "learn: unknown table"),
    ],
)
def test_mistakes_in_the_study_are_named_before_the_run_and_by_it(
    capsys, folder, tmp_path, old, new, reason
):
    study = folder / "analyst" / "study.toml"
    change(study, old, new)
    refused(capsys, folder, tmp_path / "out", reason)
    assert not SiteFile.read(folder / "north" / "site.toml").ledger.exists()
    code, output, _ = run(capsys, "check", study)
    (wrong,) = [text for text in output.splitlines() if text.startswith("wrong  ")]
    assert code == 2 and reason in wrong and "--" not in wrong


def test_check_reads_the_settings_of_a_naive_bayes_study(capsys, folder):
    study = folder / "analyst" / "study.toml"
    of_it = "learner = 'naive_bayes'\nmethod = 'hdpnb'\ntarget = 'sex'\ngamma = 0.5"
    of_it += "\nepsilon = 1\nmost_records = 300"
    change(study, "max_parents = 3", of_it)
    code, output, _ = run(capsys, "check", study)
    assert code == 0, output
    change(study, "gamma = 0.5", "gamma = 0")
    code, output, _ = run(capsys, "check", study)
    assert code == 2 and "learning.gamma: must be a number, above 0 and at most 1, got 0" in output


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('# variables = ["a", "b"] ', 'variables = ["q"] #', "no site shows q"),
        ("max_parents = 3", "ordering = ['age']", "learning.ordering: the ordering "),
        ("max_parents = 3", "structure_records = 301", "learning.structure_records: structure_re"),
        ("max_parents = 3", "structure = 's.json'", "learning.structure: the structure lacks va"),
        (
            "max_parents = 3",
            "max_parents = 3 # more than north allows",
            "learning.max_parents: max_parents must be between 0 and 2 (the sites allow tables of "
            "3 variables), got 3",
        ),
        ("# [validation]", "[validation]\ntarget = 'bmi'", "validation.target: target bmi: no "),
        (
            "# [validation]",
            "[validation]\nvalidate = ['scv']\ntarget = 'smoke'",
            "validation.target: target smoke: no such variable; there are age, sex, pulse, drug, "
            "outcome",
        ),
        (
            "# [validation]",
            "[validation]\nvalidate = ['svdg']\ntarget = 'sex'\nfolds = 99",
            "validation.folds: folds 99: the sites answer for",
        ),
    ],
)
def test_what_does_not_fit_what_the_sites_offer_is_named_before_a_table_is_opened(
    capsys, folder, tmp_path, old, new, reason
):
    (folder / "analyst" / "s.json").write_text('{"nodes": ["age"], "edges": []}')
    if "max_parents" in reason:
        change(folder / "north" / "site.toml", "most_variables = 8", "most_variables = 3")
    change(folder / "analyst" / "study.toml", old, new)
    refused(capsys, folder, tmp_path / "out", reason)
    ledger = SiteFile.read(folder / "north" / "site.toml").ledger
    assert '"tables"' not in ledger.read_text()


def test_a_validation_of_the_file(capsys, folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    change(
        study, "# [validation]", "[validation]\ntarget = 'outcome'\nvalidate = ['scv']\nfolds = 2"
    )
    assert learn_study(capsys, folder, tmp_path / "out")[0] == 0
    assert "scv" in json.loads((tmp_path / "out" / "validation.json").read_text())


def test_options_of_the_command_line_are_the_files(capsys, folder, tmp_path):
    code, _, error = learn_study(capsys, folder, tmp_path / "out", "--max-parents", 2)
    assert (
        code == 2
        and "--max-parents cannot be combined with a study.toml: set it in [learning]" in error
    )
    code, _, error = run(capsys, "learn", "--out", tmp_path / "out")
    assert code == 2 and "specify a study.toml or --data FILE: neither was given" in error
    code, _, error = run(capsys, "learn", "bananas", "--sites", 3, "--out", tmp_path / "out")
    assert code == 2 and "unexpected argument 'bananas': expected a study.toml" in error
