"""A risk appetite: what its file may have, and what the verdicts of a release make of it."""

import hashlib
import json

import pytest

from tests.e2e.command import assert_refused, learn, write
from tests.vertibayes.test_release_folder import LEDGER, released
from vertibayes.report.release import assess, read_appetite, write_release
from vertibayes_protocols.release import Rule

ACROS = """---
# frequency and degrees-of-freedom thresholds
safe_threshold: 10
safe_dof_threshold: 10
safe_nk_n: 2
safe_nk_k: 0.90   # at most
safe_pratio_p: 0.10
check_missing_values: False
survival_safe_threshold: 10
zeros_are_disclosive: True
...
"""


@pytest.fixture
def appetite(tmp_path):
    """Read a file with this content."""

    def read(text):
        path = tmp_path / "appetite.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_appetite(path)

    return read


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        (ACROS, ["pass", "fail"]),
        ("safe_threshold: 3", ["pass", "review"]),
        ("safe_threshold: 3\nzeros_are_disclosive: false", ["pass", "pass"]),
        ("safe_threshold: 41\nzeros_are_disclosive: false", ["fail", "fail"]),
    ],
)
def test_verdicts_follow_the_file(appetite, text, statuses):
    assessment = assess(*released(Rule("exact")), appetite(text))
    assert [verdict.status for verdict in assessment.verdicts] == statuses


def test_a_cut_below_the_threshold_of_the_file_fails(appetite):
    counter, network = released(Rule("cut", fewest=10))
    assert assess(counter, network).verdicts[1].status == "review"
    child = assess(counter, network, appetite("safe_threshold: 13")).verdicts[1]
    assert (child.status, child.below, child.smallest) == ("fail", 1, 12)


def test_the_release_has_the_file_its_digest_and_what_does_not_apply(appetite, tmp_path):
    for rule, unused in ((Rule("exact"), 6), (Rule("cut"), 7), (Rule("laplace"), 8)):
        folder = tmp_path / rule.kind
        write_release(folder, *released(rule), ledger=LEDGER, appetite=appetite(ACROS))
        config = json.loads((folder / "config.json").read_text())
        noted = config["risk_appetite"]
        assert config["safe_threshold"] == noted["content"]["safe_threshold"] == 10
        assert noted["content"]["safe_nk_k"] == 0.9 and len(noted["content"]) == 8
        assert noted["sha256"] == hashlib.sha256(ACROS.encode()).hexdigest()
        assert len(noted["not_applicable"]) == unused and all(noted["not_applicable"].values())
        readme = " ".join((folder / "README.txt").read_text().split())
        assert noted["sha256"] in readme
        assert ("The threshold is 10." in readme) == (not rule.is_noisy)


def test_the_cells_for_the_viewer_follow_the_file(appetite, tmp_path):
    given = appetite("safe_threshold: 28\nzeros_are_disclosive: false")
    write_release(tmp_path / "r", *released(Rule("exact")), ledger=LEDGER, appetite=given)
    results = json.loads((tmp_path / "r" / "results.json").read_text())["results"]
    cells = results["output_1"]["files"][0]["sdc"]["cells"]
    assert cells == {"MinimumThresholdCheck": [[0, 1], [0, 2], [1, 1]]}
    assert json.loads((tmp_path / "r" / "config.json").read_text())["zeros_are_disclosive"] is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "safe_threshold: missing"),
        ("zeros_are_disclosive: true", "safe_threshold: missing"),
        ("safe_threshold: 10\nsafe_treshold: 5", "line 2: safe_treshold: not a known key"),
        ("safe_threshold: 10\nsafe_threshold: 5", "line 2: safe_threshold: has a value above"),
        ("safe_threshold", "line 1: expected `key: value`"),
        ("{}", "line 1: expected `key: value`"),
        ('{"safe_threshold": 5}', "not a known key"),
        ("safe_threshold: 0", "safe_threshold: must be a whole number of at least 1, got '0'"),
        ("safe_threshold: 2.5", "safe_threshold: must be a whole number"),
        ("safe_threshold: -1", "safe_threshold: must be a number from 0"),
        ("safe_threshold: nan", "safe_threshold: must be a number"),
        ("safe_threshold: 1e30", "safe_threshold: must be a number from 0 to"),
        ("safe_threshold: ten", "safe_threshold: must be a number"),
        ("safe_threshold: 5\nsafe_nk_k: inf", "line 2: safe_nk_k: must be a number"),
        ("safe_threshold: 5\nzeros_are_disclosive: 1", "must be true or false, got '1'"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_bad_file_has_one_error_that_names_the_key(appetite, text, said):
    with pytest.raises(ValueError, match=r"appetite\.yaml") as caught:
        appetite(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_the_command_judges_by_the_file(tmp_path, capsys):
    rows = [[i % 2, i % 3] for i in range(60)]
    data = ["--data", write(tmp_path / "few.csv", ["a", "b"], rows), "--sites", 2]
    limits = ["--risk-appetite", tmp_path / "appetite.yaml"]
    assert_refused(capsys, tmp_path, "appetite.yaml: no such file", *data, *limits)
    (tmp_path / "appetite.yaml").write_text("safe_threshold: 25")
    assert_refused(capsys, tmp_path, "--risk-appetite needs --release", *data, *limits)
    data += ["--release", "exact", *limits]
    code, shown, _ = learn(capsys, tmp_path / "out", *data)
    assert code == 0 and "Release of 2 tables: 1 pass, 0 review, 1 fail" in shown
    release = json.loads((tmp_path / "out" / "summary.json").read_text())["release"]
    assert release["threshold"] == 25 and release["verdicts"] == {"pass": 1, "fail": 1}
    config = json.loads((tmp_path / "out" / "release" / "config.json").read_text())
    assert config["risk_appetite"] == release["risk_appetite"]
