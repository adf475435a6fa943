"""`vertibayes approve`, from files: what a site's owner sees, pins and withdraws."""

import json
from contextlib import closing

import pytest

from tests.e2e.command import Typed, run
from tests.protocols.deployment.parties import SITES, change, changed_key, deployment
from vertibayes.cli.contracts import contract_of
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.approvals import path_of
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.storage.memory import SiteMemory


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all", free=False)


def study_of(folder):
    return folder / "analyst" / "study.toml"


def approve(capsys, folder, *options, site="north"):
    own = folder / site / "site.toml"
    return run(capsys, "approve", study_of(folder), "--site", own, *options)


def digest_of(folder):
    return contract_of(StudyFile.read(study_of(folder))).digest


def test_the_owner_sees_what_leaves_and_to_whom(capsys, folder):
    code, shown, error = approve(capsys, folder, "--yes", "--by", "A. Owner")
    assert code == 0 and not error
    for words in (
        "Study of analyst with north, south, east; dealer: dealer",
        "Of this site, north: age, sex",
        "Of the other sites: ",
        "analyst learns, once:",
        "by k2: which parents, at most 3 and before it in the order, predict each variable best; "
        "and which of these win narrowly",
        "compared over all records; no count: at most 23 bits",
        "in each run, also if",
        "what is compared next, and how often, depends on the winners",
        "5 tables of counts over all records: one for each variable with its parents",
        "rule cut: a count below 10 is released as 0",
        "The other sites (south, east) learn the same",
        "counts from 10 on are exact",
        "shows groups of people that differ by one person",
        "a winner can tell what two people have",
    ):
        assert words in shown, words
    digest = digest_of(folder).hex()
    assert " ".join(digest[at : at + 4] for at in range(0, 64, 4)) in shown


def test_the_approval_is_one_file_with_the_contract_and_who_approved_it(capsys, folder):
    assert approve(capsys, folder, "--yes", "--by", "A. Owner")[0] == 0
    path = path_of(SiteFile.read(folder / "north" / "site.toml").approved, digest_of(folder))
    content = json.loads(path.read_text())
    assert content["approver"] == "A. Owner" and content["contract"]["runs"] == 1
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    before = path.read_bytes()
    code, shown, _ = approve(capsys, folder, "--yes", "--by", "another")
    assert code == 0 and "approved this study before" in shown and path.read_bytes() == before


def test_a_wrong_digest_is_refused_also_of_a_study_that_is_approved(capsys, folder):
    assert approve(capsys, folder, "--yes")[0] == 0
    code, _, error = approve(capsys, folder, "--digest", "00" * 32)
    assert code == 2 and "--digest is not that of" in error


def test_a_study_by_another_way_is_refused_for_its_way(capsys, folder):
    change(study_of(folder), '# count_by = "masked-tables"', 'count_by = "paillier"')
    code, _, error = approve(capsys, folder, "--yes")
    assert code == 2 and "study.count_by: approved studies count by masked-tables" in error


def test_the_digest_is_that_of_the_analyst(capsys, folder):
    shown = approve(capsys, folder, "--yes")[1]
    line = next(line for line in shown.splitlines() if line.startswith("Digest: "))
    checked = run(capsys, "check", study_of(folder))[1]
    assert f"the digest of the study is {line.removeprefix('Digest: ')}" in checked


def test_a_blank_name_does_not_approve(capsys, folder):
    code, _, error = approve(capsys, folder, "--yes", "--by", " ")
    assert code == 2 and "--by must be a text that is not empty, got" in error
    assert not (folder / "north" / "memory" / "approved").exists()


def test_without_a_terminal_nobody_is_asked(capsys, folder):
    code, _, error = approve(capsys, folder)
    assert code == 2 and "the input is not a terminal: specify --digest DIGEST" in error
    assert not (folder / "north" / "memory" / "approved").exists()


@pytest.mark.parametrize(("typed", "approved"), [("right", True), ("0000", False), ("", False)])
def test_the_owner_types_the_first_digits(capsys, folder, monkeypatch, typed, approved):
    answer = digest_of(folder).hex()[:16] if typed == "right" else typed

    monkeypatch.setattr("sys.stdin", Typed(f"{answer}\n"))
    assert (approve(capsys, folder)[0] == 0) == approved


@pytest.mark.parametrize("party", ["south", "dealer"])
def test_a_study_with_another_key_than_the_site_pins_is_refused(capsys, folder, party):
    other = (folder / "analyst" / "study.toml").read_text().split('east = "')[1].split('"')[0]
    text = study_of(folder).read_text()
    study_of(folder).write_text(text.replace(f'east = "{other}"\n', ""))
    changed_key(study_of(folder), party, other)
    code, _, error = approve(capsys, folder, "--yes")
    assert code == 2 and f"of {party}: the two must be equal" in error


def test_another_key_of_this_site_is_refused(capsys, folder):
    other = study_of(folder).read_text().split('east = "')[1].split('"')[0]
    change(study_of(folder), f'east = "{other}"\n', "")
    changed_key(study_of(folder), "north", other)
    code, _, error = approve(capsys, folder, "--yes")
    assert code == 2 and "not the public key of this site" in error


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name = "analyst"', 'name = "other"', "'other' is not an analyst that"),
        ("runs = 1 ", "runs = 0 ", "release.runs: must be"),
        ('rule = "cut"', 'rule = "exact"', None),
        ("\nfewest = 10 ", '\nfewest = "10" ', "release.fewest: must be"),
        ("max_parents = 3", "max_parents = 8", "the study needs tables of 5 variables"),
        ("max_parents = 3", "wider_cells = 9", "wider_cells: "),
        ("max_parents = 3", 'ordering = ["age", "sex"]', "does not fit the study's variables"),
    ],
)
def test_a_study_that_does_not_fit_is_refused(capsys, folder, old, new, reason):
    change(study_of(folder), old, new)
    change(folder / "north" / "site.toml", "most_variables = 8", "most_variables = 4")
    code, _, error = approve(capsys, folder, "--yes")
    assert code == (2 if reason else 0) and (reason or "") in error, error


def test_files_that_the_study_names_are_in_the_digest(capsys, folder):
    order = folder / "analyst" / "order.json"
    order.write_text(json.dumps(["sex", "age", "pulse", "drug", "outcome"]))
    change(study_of(folder), "max_parents = 3", 'max_parents = 3\nordering = "order.json"')
    first = digest_of(folder)
    order.write_text(json.dumps(["age", "sex", "pulse", "drug", "outcome"]))
    assert digest_of(folder) != first
    structure = {"nodes": ["age", "sex", "pulse", "drug", "outcome"], "edges": [["age", "drug"]]}
    order.write_text(json.dumps(structure))
    change(study_of(folder), 'ordering = "order.json"', 'structure = "order.json"')
    change(study_of(folder), 'algorithm = "k2"', "")
    shown = approve(capsys, folder, "--yes")[1]
    assert "no choice: the study states the parents" in shown
    assert "at most 2 variables in a table" in shown


def test_what_is_not_agreed_does_not_change_the_digest(folder):
    first = digest_of(folder)
    change(study_of(folder), 'folder = "study"', 'folder = "study2"')
    change(study_of(folder), "127.0.0.1:8102", "127.0.0.1:8103")
    assert digest_of(folder) == first


def test_approvals_are_listed_and_withdrawn(capsys, folder):
    approve(capsys, folder, "--yes", "--by", "A. Owner")
    own, digest = folder / "north" / "site.toml", digest_of(folder).hex()
    code, shown, _ = run(capsys, "approve", "--list", "--site", own)
    assert code == 0 and "answers approved studies alone" in shown
    assert "approved by A. Owner on 20" in shown and digest[:4] in shown
    code, _, error = run(capsys, "approve", "--withdraw", "xx", "--site", own)
    assert code == 2 and "no approval begins with the digest 'xx'" in error
    spaced = f"{digest[:4]} {digest[4:8]}"
    code, shown, _ = run(capsys, "approve", "--withdraw", spaced, "--site", own)
    assert code == 0 and ".withdrawn" in shown
    assert digest[:4] not in run(capsys, "approve", "--list", "--site", own)[1]
    assert approve(capsys, folder, "--yes")[0] == 0, "it can be approved again"


def test_one_thing_is_done_at_a_time(capsys, folder):
    for options in ((), ("--list", "--withdraw", "00")):
        code, _, error = run(capsys, "approve", *options)
        assert code == 2 and "specify one of study.toml, --list and --withdraw" in error


def test_approvals_that_were_tampered_with_are_refused(capsys, folder):
    approve(capsys, folder, "--yes")
    own = SiteFile.read(folder / "north" / "site.toml")
    from vertibayes_protocols.deployment.approvals import ApprovalFolder

    approvals, path = (
        ApprovalFolder(own.approved, lambda c: None),
        path_of(own.approved, digest_of(folder)),
    )
    assert approvals(digest_of(folder)).contract.runs == 1
    assert approvals(bytes(32)) is None
    text = path.read_text()
    for old, new, reason in (
        ('"runs": 1', '"runs": 9', "another digest than its name"),
        ('"approver"', '"approved"', "not a valid approval"),
        ("{", "[", "not a valid approval"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(ValueError, match=reason):
            approvals(digest_of(folder))
    path.write_text(text)
    path.chmod(0o666)
    with pytest.raises(ValueError, match="other users may write to it"):
        approvals(digest_of(folder))


def test_every_site_approves_the_same_digest(capsys, folder):
    for site in SITES:
        assert approve(capsys, folder, "--yes", site=site)[0] == 0
    names = {p.name for s in SITES for p in (folder / s / "memory" / "approved").iterdir()}
    assert names == {f"{digest_of(folder).hex()}.json"}


def test_a_script_approves_with_the_digest_that_was_read_out(capsys, folder):
    """Another digest approves nothing."""
    digest = grouped_digest(contract_of(StudyFile.read(folder / "analyst" / "study.toml")).digest)
    other = digest.replace(digest[0], "0" if digest[0] != "0" else "1")
    code, _, error = approve(capsys, folder, "--digest", other)
    assert code == 2 and "--digest is not that of" in error and digest in error
    assert not (folder / "north" / "memory" / "approved").exists()
    code, _, error = approve(capsys, folder, "--digest", digest)
    assert code == 0, error
    assert len(list((folder / "north" / "memory" / "approved").glob("*.json"))) == 1


def correct(own, records):
    """Write another sex for the first records of a site's table."""
    head, *lines = own.data.place.read_text().splitlines()
    place, texts = head.split(",").index("sex"), {"f": "m", "m": "f"}
    rows = [line.split(",") for line in lines]
    for row in rows[:records]:
        row[place] = texts[row[place]]
    own.data.place.write_text("\n".join([head, *map(",".join, rows)]) + "\n")


def test_data_that_changed_since_an_earlier_study_are_approved_beside_it(capsys, folder):
    own = SiteFile.read(folder / "north" / "site.toml")
    own.folder.mkdir(exist_ok=True)
    data = read_data(own)
    with closing(SiteMemory(own.memory)) as memory:
        memory.keep_values(memory.snapshot(data, ["age", "sex"], memory.digests(data)))
    code, shown, _ = approve(capsys, folder, "--yes")
    assert code == 0 and "an earlier study" not in shown
    correct(own, 3)
    code, shown, _ = approve(capsys, folder, "--yes")
    assert code == 0 and "before: nothing is changed" not in shown
    assert "These data, or this rule, are not those of an earlier study" in shown
    assert "- sex: 3 changed; the smallest group of people with the same change: " in shown
    path = path_of(own.approved, digest_of(folder))
    first = json.loads(path.read_text())["data"]
    assert len(bytes.fromhex(first)) == 64, "a digest of these data and of the earlier ones"
    assert "nothing is changed" in approve(capsys, folder, "--yes")[1]
    correct(own, 1)  # the approval is for these data alone
    assert "nothing is changed" not in approve(capsys, folder, "--yes")[1]
    assert json.loads(path.read_text())["data"] != first
    shown = run(capsys, "check", folder / "north" / "site.toml")[1]
    assert "since an earlier study: sex: 2 changed" in shown
