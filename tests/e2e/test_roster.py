"""`vertibayes roster`, `keygen --enrol` and `init --roster`, as people use them."""

import re
from pathlib import Path
from shutil import copytree

import pytest

from tests.e2e.command import Typed, run
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.roster.changes import enrolment_line, first_roster
from vertibayes_protocols.deployment.roster.roster import read_roster, write_roster
from vertibayes_protocols.deployment.templates import Names, init
from vertibayes_protocols.public_keys import public_text

PARTIES = {"clinic": "site", "hospital": "site", "dealer": "dealer", "ana": "analyst"}


def file_of(folder, party):
    name = {"site": "site", "dealer": "dealer", "analyst": "study"}[PARTIES[party]]
    return folder / "files" / party / f"{name}.toml"


def make(capsys, folder, *options, lines="lines.txt", out=None):
    key = folder / "coordinator.key"
    more = () if out is None else ("--out", out)
    return run(capsys, "roster", "make", folder / lines, "--key", key, *options, *more)


def digest_in(shown):
    return re.search(r"(?m)^Digest: (.*)$", shown)[1]


@pytest.fixture
def folder(made, tmp_path):
    return Path(copytree(made, tmp_path / "all"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of four parties whose keys are in roster-1.json, which nobody has pinned."""
    folder = tmp_path_factory.mktemp("made")
    names = Names(("clinic", "hospital"), analysts=("ana",))
    init(folder / "files", names, roster=True, relay_address="127.0.0.1:1")
    coordinator = make_private(folder / "coordinator.key")
    keys = {p: make_private(folder / "files" / p / f"{p}.key") for p in PARTIES}
    lines = [enrolment_line(role, party, keys[party]) for party, role in PARTIES.items()]
    (folder / "lines.txt").write_text("\n".join(lines))
    first = first_roster("lungs", lines, public_text(coordinator))
    write_roster(folder / "roster-1.json", first, coordinator)
    for path in (folder / "files").glob("*/*.toml"):  # no certificates, for this test
        text = path.read_text()
        for key in ("root", "certificate", "key"):
            text = re.sub(rf'(?m)^{key} = "(rootCA|client|server)', rf'# {key} = "\1', text)
        path.write_text(text)
    return folder


def pin(capsys, folder, party, epoch, *options):
    roster = folder / f"roster-{epoch}.json"
    digest = "--digest", read_roster(roster).digest.hex()
    return run(capsys, "roster", "pin", file_of(folder, party), roster, *(options or digest))


def test_the_list_of_commands_cuts_no_sentence(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, "roster", "--help")
    assert code == 0 and "  rotate  " in out and "..." not in out.split("Commands:")[1]


def test_the_files_say_what_is_missing_until_a_roster_is_pinned(capsys, folder):
    site = file_of(folder, "clinic")
    assert "vb1:" not in site.read_text() and "paste" not in site.read_text()
    code, out, _ = run(capsys, "check", site)
    assert code == 2 and "or a roster: `vertibayes roster pin site.toml ROSTER`" in out
    code, shown, error = pin(capsys, folder, "clinic", 1)
    assert (code, error) == (0, "")
    assert "new:         site hospital, key vb1:" in shown
    assert f"Pinned: {site}; restart the party that uses it" in shown
    assert set(SiteFile.read(site).pinned) == {"hospital", "dealer", "ana"}
    code, out, _ = run(capsys, "check", site)
    assert "its key is in epoch 1 of the roster of lungs, digest " in out
    code, shown, _ = pin(capsys, folder, "clinic", 1)
    assert code == 0 and "has pinned this roster before: nothing is changed" in shown


def test_all_parties_read_out_one_digest(capsys, folder):
    shown = run(capsys, "roster", "show", folder / "roster-1.json")[1]
    assert "site     clinic, key vb1:" in shown and "analyst  ana, key vb1:" in shown
    pinned = pin(capsys, folder, "hospital", 1)[1]
    assert digest_in(shown) == digest_in(pinned)


def test_another_digest_changes_nothing(capsys, folder):
    before = file_of(folder, "clinic").read_bytes()
    for digest, reason in (
        ("00" * 32, "--digest is not that of"),
        ("0f 3a", "'0f 3a' is not a digest: expected 64 hexadecimal digits"),
    ):
        code, _, error = pin(capsys, folder, "clinic", 1, "--digest", digest)
        assert code == 2 and reason in error
    code, _, error = run(
        capsys, "roster", "pin", file_of(folder, "clinic"), folder / "roster-1.json"
    )
    assert code == 2 and "the input is not a terminal: specify --digest DIGEST" in error
    assert file_of(folder, "clinic").read_bytes() == before


@pytest.mark.parametrize(("typed", "pinned"), [("right", True), ("0000", False), ("", False)])
def test_the_owner_types_the_first_digits(capsys, folder, monkeypatch, typed, pinned):
    digest = read_roster(folder / "roster-1.json").digest.hex()

    answer = digest[:4] if typed == "right" else typed
    monkeypatch.setattr("sys.stdin", Typed(f"{answer}\n"))
    site = file_of(folder, "clinic")
    code, _, error = run(capsys, "roster", "pin", site, folder / "roster-1.json")
    assert (code == 0) == pinned and ("[roster]" in site.read_text()) == pinned
    assert pinned or "compare all of it with the coordinator by telephone" in error


def test_a_key_is_rotated_by_one_line_and_a_pin(capsys, folder):
    for party in PARTIES:
        assert pin(capsys, folder, party, 1)[0] == 0
    code, line, notes = run(capsys, "roster", "rotate", file_of(folder, "clinic"))
    assert code == 0 and line.startswith("rotate clinic vb1:") and line.count("\n") == 1
    assert "clinic.2.key; the old key stays in use" in notes and "approved again" in notes
    (folder / "rotate.txt").write_text(line)
    after = "--after", folder / "roster-1.json"
    code, shown, error = make(capsys, folder, *after, lines="rotate.txt")
    assert (code, error) == (0, "")
    assert "roster-2.json: epoch 2 of the roster of lungs, 4 members" in shown
    assert "key changed: site clinic, new key vb1:" in shown
    shown = pin(capsys, folder, "clinic", 2)[1]
    assert "own key:     clinic.2.key, in place of clinic.key" in shown
    code, _, error = pin(capsys, folder, "clinic", 1)
    assert code == 2 and "its epoch is 1, and epoch 2 is pinned" in error
    assert "rotated at epoch 2" in run(capsys, "roster", "show", folder / "roster-2.json")[1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "specify --consortium NAME for the first roster, or --after ROSTER"),
        (("--consortium", "x", "--after", "y"), "specify --consortium NAME"),
        (("--consortium", "lungs"), "roster-1.json exists: each epoch has a file of its own"),
        (("--after", "no.json"), "no.json: no such file"),
        (("--consortium", ""), "the name of a consortium must have 1 to"),
    ],
)
def test_mistakes_of_the_coordinator_are_named(capsys, folder, options, reason):
    code, out, error = make(capsys, folder, *options)
    assert code == 2 and not out and reason in error


def test_a_wrong_line_or_key_makes_no_roster(capsys, folder):
    after = "--after", folder / "roster-1.json"
    (folder / "bad.txt").write_text("# from the clinic\nrotate clinic\n")
    code, _, error = make(capsys, folder, *after, lines="bad.txt")
    assert code == 2 and "bad.txt, line 2: 'rotate clinic' is not a valid line" in error
    (folder / "leave.txt").write_text("revoke hospital\n")
    (folder / "coordinator.key").unlink()
    run(capsys, "keygen", "--out", folder / "coordinator.key")
    code, _, error = make(capsys, folder, *after, lines="leave.txt")
    assert code == 2 and "not that of the coordinator of lungs: specify it with --key" in error
    assert not (folder / "roster-2.json").exists()


def test_the_coordinator_makes_a_roster_of_what_keygen_prints(capsys, tmp_path):
    run(capsys, "keygen", "--out", tmp_path / "coordinator.key")
    lines = ["# by telephone\n"]
    for party, role in PARTIES.items():
        key = tmp_path / f"{party}.key"
        code, line, error = run(capsys, "keygen", "--out", key, "--enrol", role, party)
        assert (code, error) == (0, "")
        assert line == f"enrol {role} {party} {public_text(read_private(key))}\n"
        lines.append(line)
    (tmp_path / "lines.txt").write_text("".join(lines))
    code, shown, error = make(capsys, tmp_path, "--consortium", "lungs", out=tmp_path / "r.json")
    assert (code, error) == (0, "") and "new:         site clinic, key vb1:" in shown
    roster = read_roster(tmp_path / "r.json")
    assert {m.name: m.role for m in roster.members} == PARTIES
    assert roster.digest.hex() == "".join(digest_in(shown).split())


@pytest.mark.parametrize(
    ("enrol", "reason"),
    [
        (("relay", "relay"), "'relay' is not a valid name"),
        (("station", "clinic"), "the role must be one of site, dealer, analyst, got 'station'"),
    ],
)
def test_keygen_makes_no_key_for_a_party_that_cannot_be(capsys, tmp_path, enrol, reason):
    code, _, error = run(capsys, "keygen", "--out", tmp_path / "x.key", "--enrol", *enrol)
    assert code == 2 and reason in error and not (tmp_path / "x.key").exists()
