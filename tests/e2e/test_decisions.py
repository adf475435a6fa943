"""What an owner decides with: states, earlier studies, the page; declining; a second person."""

import json
import re
from html import unescape

import pytest

from tests.e2e.command import run
from tests.e2e.studies import run_in_one_process
from tests.e2e.test_approve import approve, digest_of, study_of
from tests.protocols.deployment.parties import SITES, change, deployment
from vertibayes.cli.hosted import report_of
from vertibayes.report.sheet.blocks import blocks_of, text_of
from vertibayes_protocols.approval import UnusableApprovalError
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.approvals import path_of, valid_approval
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.keys import make_private
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.public_keys import encode_public, public_text
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.variables import Rows

EARLIER = "Earlier studies over these variables\n"
SECOND = "--by", "B. Second", "--second"


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all", free=False, address="127.0.0.1:9")  # where nothing listens


def own_of(folder, site="north"):
    return SiteFile.read(folder / site / "site.toml")


def rewrite(folder, name, texts):
    """Replace a column of the records of north."""
    path = own_of(folder).data.place
    head, *lines = [line.split(",") for line in path.read_text().splitlines()]
    place = head.index(name)
    for line, text in zip(lines, texts(len(lines)), strict=True):
        line[place] = text
    path.write_text("".join(f"{','.join(line)}\n" for line in [head, *lines]))


def meet(capsys, folder):
    """Begin a session of the study; return what the command says."""
    return run(capsys, "check", study_of(folder), "--meet")[1]


def usable(folder, site="north"):
    """Return the approval with which a run of the study may begin."""
    own = own_of(folder, site)
    return valid_approval(own.approved, digest_of(folder), own.party, own.second)


# ---- what the owner reads ------------------------------------------------------------------------


def test_the_owner_reads_the_states_that_all_learn_and_which_few_people_have(capsys, folder):
    change(folder / "north" / "site.toml", '# rare_states = "merge"', 'rare_states = "keep" #')
    change(study_of(folder), 'rule = "cut"', 'rule = "rounded"')
    few = [*["s0"] * 9, "s1"]  # nine people and one
    rewrite(folder, "sex", lambda n: few + ["abcdefghij"[at % 10] for at in range(n - 10)])
    shown = approve(capsys, folder, "--yes")[1]
    assert "  age       4       le_30, from_30_to_50, from_50_to_70, gt_70\n" in shown
    assert "  sex       12      a, b, c, d, e, f, g, h; and 4 more\n" in shown
    assert "Few people here have these states: sex: s0, sex: s1 (1 to 9 pe" in shown


def test_earlier_studies_of_these_variables_are_those_approved_and_those_in_the_ledger(
    capsys, folder
):
    """One is approved, of one an approval is gone, and one has variables of other sites."""
    assert "No other study over them is approved here" in approve(capsys, folder, "--yes")[1]
    first = grouped_digest(digest_of(folder))[:19]
    ledger = LedgerFile(own_of(folder).ledger)
    for study, names in (("ab" * 32, ("sex", "pulse")), ("cd" * 32, ("pulse",))):
        session = ledger.begin("analyst", lambda study=study: (study, "A. Owner on 2026-01-31"))
        session.open([RevealedTable(names, 6, "analyst", Rows(), "counts below 10 as 0")])
    ledger.close()
    change(study_of(folder), "runs = 1 ", "runs = 2 ")
    shown = approve(capsys, folder, "--yes")[1].split(EARLIER)[1]
    assert re.search(rf"  {first}  approved 20\S+; cut 10; 0 of 1 run used: age, sex\n", shown)
    day = r"20\d\d-\d\d-\d\d"
    assert re.search(rf"  {'abab ' * 3}abab  released {day}; cut 10; 0 runs: sex, in 1 t", shown)
    assert "cdcd" not in shown and grouped_digest(digest_of(folder))[:19] not in shown


def test_an_identifier_among_the_variables_is_a_warning_of_approve_and_of_check(capsys, folder):
    assert "looks like an identifier" not in approve(capsys, folder, "--yes")[1]
    rewrite(folder, "age", lambda n: map(str, range(7000, 7000 + n)))
    change(folder / "north" / "site.toml", "[30, 50, 70]", "[7100, 7200]")
    shown = approve(capsys, folder, "--yes")[1]
    why = "300 different values in 300 records, which identify them; "
    assert f"Warning: age looks like an identifier: {why}" in shown
    assert f"age: {why}" in run(capsys, "check", folder / "north" / "site.toml")[1]
    rewrite(folder, "age", lambda n: [str(at * at) for at in range(n)])
    assert why not in approve(capsys, folder, "--yes")[1], "different, but no list of numbers"


# ---- the page ------------------------------------------------------------------------------------


def test_the_page_says_what_the_terminal_says_and_has_lines_to_sign(capsys, folder, tmp_path):
    page = tmp_path / "page.html"
    options = "--permit", "METC <17>", "--until", "2999-12-31", "--page", page
    code, shown, error = approve(capsys, folder, *options, "--digest", "00" * 32)
    assert code == 2 and "Not decided yet." in page.read_text()
    code, shown, error = approve(capsys, folder, *options, "--yes", "--by", "A. Owner")
    assert code == 0, error
    text = page.read_text()
    plain = " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())
    said = shown.split("\nApproved: ")[0]
    for line in said.replace("`", "").splitlines():
        assert " ".join(line.removeprefix("- ").split()) in plain, line
    assert "Permit: METC &lt;17&gt;" in text and "Approved by A. Owner on 20" in text
    assert "<th>for north</th>" in text and "second person" not in text
    assert "http" not in text.replace("http-equiv", "") and "src=" not in text


def test_the_text_of_a_terminal_has_its_width():
    rows = "used\tof\n7\tall that there is " + "and more " * 5
    text = f"# Title\n- {'word ' * 20}\n  {'below ' * 15}\n\n{rows}\n{'long ' * 20}"
    lines = text_of(blocks_of(text), 40).splitlines()
    assert max(map(len, lines)) <= 40 and lines[0] == "Title"
    assert sum(line.startswith("- word") for line in lines) == 1
    assert (
        "  7     all that there is and more and" in lines
        and "        more and more and more and more" in lines
    )
    assert text_of(blocks_of(text)).count("\n") == 7


# ---- declining -----------------------------------------------------------------------------------


def test_who_runs_a_declined_study_reads_why_and_it_can_still_be_approved(
    capsys, folder, tmp_path, monkeypatch
):
    run_in_one_process(monkeypatch, folder)
    for site in SITES:
        approve(capsys, folder, "--yes", site=site)
    own, page = folder / "north" / "site.toml", tmp_path / "page.html"
    given = "--because", "no permit \x1b", "--by", "A. Owner", "--page", page
    code, shown, error = run(capsys, "decline", study_of(folder), "--site", own, *given)
    assert code == 0 and ".declined" in shown, error
    assert "Declined by A. Owner on 20" in page.read_text()
    assert "the study with the digest" in (said := meet(capsys, folder))
    assert "was declined by its owner: no permit ?" in said
    report = report_of(own, digest_of(folder).hex())
    assert (report.state, report.reason) == ("refused", "the study was declined by its owner")
    listed = run(capsys, "approve", "--list", "--site", own)[1]
    assert "declined by A. Owner on 20" in listed and "approved by" not in listed
    approve(capsys, folder, "--yes")
    assert "declined" not in run(capsys, "approve", "--list", "--site", own)[1]
    assert "the sites have approved the study" in meet(capsys, folder)


def test_a_study_of_others_and_a_reason_without_end_are_not_declined(capsys, folder):
    own = folder / "north" / "site.toml"
    code, _, error = run(capsys, "decline", study_of(folder), "--site", own, "--because", "x" * 501)
    assert code == 2 and "--because must have at most 500 characters, got 501" in error
    change(study_of(folder), 'name = "analyst"', 'name = "other"')
    code, _, error = run(capsys, "decline", study_of(folder), "--site", own, "--because", "x")
    assert code == 2 and "'other' is not an analyst that" in error
    assert not own_of(folder).approved.exists()


# ---- a second person -----------------------------------------------------------------------------


@pytest.fixture
def key(folder):
    """Name a second person, whose private key this is, at north and south."""
    path = folder / "second.key"
    text = public_text(make_private(path))
    for site in ("north", "south"):
        named = f'[policy]\nsecond_person = "{text}"'
        change(folder / site / "site.toml", "[policy]  ", f"{named} # ")
    return path


def test_a_run_waits_for_the_second_person(capsys, folder, tmp_path, monkeypatch, key):
    run_in_one_process(monkeypatch, folder)
    page = tmp_path / "page.html"
    code, _, error = approve(capsys, folder, "--yes", *SECOND, key)
    assert code == 2 and "has no approval of this study with these data" in error
    for site in SITES:
        shown = approve(capsys, folder, "--yes", "--by", "A. Owner", "--page", page, site=site)[1]
        assert ("It waits for the second person" in shown) == (site != "east")
    assert "a second person's consent, which is missing" in meet(capsys, folder)
    own = folder / "north" / "site.toml"
    assert "(waits for the second person)" in run(capsys, "approve", "--list", "--site", own)[1]
    code, _, error = approve(capsys, folder, "--yes", "--by", "A. Owner", "--second", key)
    assert code == 2 and "the second person is another one" in error
    for site in ("north", "south"):
        options = "--yes", *SECOND, key, "--page", page
        code, shown, error = approve(capsys, folder, *options, site=site)
        assert code == 0 and "It waits" not in shown, error
    assert "<th>second person</th>" in page.read_text()
    assert "A. Owner on 20" in page.read_text() and "and B. Second on 20" in page.read_text()
    assert "the sites have approved the study" in meet(capsys, folder)
    assert "approved by A. Owner on 20" in (ledger := own_of(folder).ledger.read_text())
    assert "and B. Second on 20" in ledger


def test_another_key_and_a_key_that_nobody_asks_for_are_refused(capsys, folder, key):
    make_private(folder / "other.key")
    approve(capsys, folder, "--yes", "--by", "A. Owner")
    code, _, error = approve(capsys, folder, "--yes", *SECOND, folder / "other.key")
    assert code == 2 and "policy.second_person: it is not the public key of --second" in error
    code, _, error = approve(capsys, folder, "--yes", *SECOND, key, site="east")
    assert code == 2 and "policy.second_person: missing; nobody else must consent" in error


@pytest.mark.parametrize("change_", ["purpose", "permit", "until", "version", "data", "approver"])
def test_a_signature_is_of_all_that_the_approval_says(capsys, folder, key, change_):
    options = "--yes", "--purpose", "a", "--permit", "b", "--until", "2999-12-31"
    approve(capsys, folder, *options, "--by", "A. Owner")
    approve(capsys, folder, "--yes", *SECOND, key)
    assert usable(folder).second.by == "B. Second"
    path = path_of(own_of(folder).approved, digest_of(folder))
    new = {"until": "2999-12-30", "data": "ab"}.get(change_, "other")
    path.write_text(json.dumps({**json.loads(path.read_text()), change_: new}))
    with pytest.raises(UnusableApprovalError, match="consent, which is not for this approval"):
        usable(folder)


def test_a_signature_of_another_study_site_or_key_and_one_withdrawn_are_refused(
    capsys, folder, key
):
    def consent(site="north"):
        path = path_of(own_of(folder, site).approved, digest_of(folder))
        return path, json.loads(path.read_text())

    for site in ("north", "south"):
        approve(capsys, folder, "--yes", "--by", "A. Owner", site=site)
        approve(capsys, folder, "--yes", *SECOND, key, site=site)
    path, good = consent()
    there, _ = consent("south")
    there.write_text(json.dumps(good))
    with pytest.raises(UnusableApprovalError, match="not for this approval"):
        usable(folder, "south")
    forged = {**good["second"], "signature": "00" * 64}
    renamed = {**good["second"], "by": "C. Third"}
    for second in (forged, renamed):
        path.write_text(json.dumps({**good, "second": second}))
        with pytest.raises(UnusableApprovalError, match="not for this approval"):
            usable(folder)
    path.write_text(json.dumps({**good, "second": {"by": "B. Second"}}))
    with pytest.raises(ValueError, match="not a valid approval"):
        usable(folder)
    path.write_text(json.dumps(good))
    own = folder / "north" / "site.toml"
    run(capsys, "approve", "--withdraw", digest_of(folder).hex(), "--site", own)
    assert usable(folder) is None
    approve(capsys, folder, "--yes", "--by", "A. Owner")
    with pytest.raises(UnusableApprovalError, match="which is missing"):
        usable(folder)
    change(study_of(folder), "runs = 1 ", "runs = 2 ")
    approve(capsys, folder, "--yes", "--by", "A. Owner")
    other, content = consent()
    other.write_text(json.dumps({**content, "second": good["second"]}))
    with pytest.raises(UnusableApprovalError, match="not for this approval"):
        usable(folder)


def test_a_consent_that_nobody_asks_for_is_not_in_the_ledger(capsys, folder, key):
    approve(capsys, folder, "--yes", "--by", "A. Owner")
    approve(capsys, folder, "--yes", *SECOND, key)
    own = folder / "north" / "site.toml"
    own.write_text(re.sub("(?m)^second_person = .*$", "", own.read_text()))
    assert usable(folder).second is None


def test_a_key_without_signatures_is_refused(folder, key):
    text = (folder / "east" / "site.toml").read_text()
    alone = encode_public(make_private(folder / "alone.key").public)
    (folder / "east" / "site.toml").write_text(
        text.replace("[policy]", f'[policy]\nsecond_person = "{alone}"')
    )
    with pytest.raises(ValueError, match=r"line \d+: policy\.second_person: no key for signatures"):
        own_of(folder, "east")


# ---- the digest ----------------------------------------------------------------------------------


def test_a_script_and_an_owner_print_the_digest_alone(capsys, folder):
    digest = f"{grouped_digest(digest_of(folder))}\n"
    assert run(capsys, "check", study_of(folder), "--digest")[:2] == (0, digest)
    (folder / "analyst" / "analyst.key").unlink()
    own = folder / "north" / "site.toml"
    assert run(capsys, "check", study_of(folder), own, "--digest")[:2] == (0, digest)
    code, _, error = run(capsys, "check", study_of(folder), own, own, "--digest")
    assert code == 2 and "--digest takes study.toml and at most one site.toml, got 3" in error
    code, _, error = run(capsys, "check", study_of(folder), "--digest", "--meet")
    assert code == 2 and "specify one of --meet and --digest" in error
