"""A party's file pins a roster: what it takes from it, what it refuses, what it says."""

import os
import stat
from pathlib import Path
from shutil import copytree

import pytest

from tests.protocols.deployment.parties import SITES, change
from tests.protocols.deployment.rosters import ROLES, advance, consortium, file_of, pin
from vertibayes.cli.approve import approvable
from vertibayes.cli.contracts import contract_of
from vertibayes_protocols.deployment.approvals import Approval, write_approval
from vertibayes_protocols.deployment.checks import Outside, check_files, read_any
from vertibayes_protocols.deployment.files import DealerFile, SiteFile, StudyFile, own_keys
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.roster.changes import enrolment_line
from vertibayes_protocols.deployment.roster.pinning import pinning, rotate
from vertibayes_protocols.deployment.roster.roster import read_roster
from vertibayes_protocols.deployment.running import dealer_role
from vertibayes_protocols.public_keys import public_text

QUIET = Outside(*(lambda *_: None for _ in range(3)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return consortium(tmp_path_factory.mktemp("made") / "all", free=False)


@pytest.fixture
def folder(made, tmp_path):
    return Path(copytree(made, tmp_path / "all"))


@pytest.fixture
def site(folder):
    return file_of(folder, "north")


def rotated(folder, party="north"):
    """Rotate a party's key, and have it and nobody else pin the new roster."""
    line, key = rotate(file_of(folder, party))
    advance(folder, line)
    return pin(folder, party, 2), key


def wrong(folder):
    return [text for how, text in check_files(sorted(folder.glob("*/*.toml")), QUIET).lines
            if how == "wrong"]  # fmt: skip


# ---- what a file takes from a roster -------------------------------------------------------------


def test_each_party_takes_the_others_from_the_roster(folder):
    keys = {p: read_private(folder / p / f"{p}.key").public for p in ROLES}
    north = SiteFile.read(file_of(folder, "north"))
    assert north.pinned == {p: k for p, k in keys.items() if p != "north"}
    assert north.dealer == "dealer" and north.analysts == {"analyst": keys["analyst"]}
    assert set(north.signing) == {"south", "east"}
    dealer = DealerFile.read(file_of(folder, "dealer"))
    assert dealer.pinned == {p: k for p, k in keys.items() if p != "dealer"}
    assert set(dealer_role(dealer).public_keys) == set(SITES)
    study = StudyFile.read(file_of(folder, "analyst"))
    assert study.sites == SITES and set(study.pinned) == {*SITES, "dealer"}
    assert not wrong(folder)


def test_a_study_has_the_sites_that_it_names_in_its_order(folder):
    study = file_of(folder, "analyst")
    change(study, 'sites = ["north", "south", "east"]', 'sites = ["east", "north"]')
    assert StudyFile.read(study).sites == ("east", "north")


def test_a_party_that_is_enrolled_later_changes_no_contract(folder):
    before = contract_of(StudyFile.read(file_of(folder, "analyst")))
    advance(folder, enrolment_line("site", "west", make_private(folder / "west.key")))
    pin(folder, "analyst", 2)
    assert contract_of(StudyFile.read(file_of(folder, "analyst"))) == before


def test_a_key_in_the_file_and_a_roster_work_together_for_different_parties(folder, site):
    other = public_text(make_private(folder / "west.key"))
    site.write_text(site.read_text() + f'\n[peers]\nwest = "{other}"\n')
    assert set(SiteFile.read(site).pinned) == {"south", "east", "west", "dealer", "analyst"}


# ---- mistakes ------------------------------------------------------------------------------------

DIGEST = "digest = "


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (DIGEST, 'digest = "0f" # ', "roster.digest: '0f' is not a digest: expected 64"),
        (DIGEST, f'digest = "{"00" * 32}" # ', "another digest: "),
        ('"roster-1.json"', '"roster-7.json"', "no such file; ask the coordinator"),
        ('"roster-1.json"', '"records.csv"', "not a valid roster"),
        ("[roster]", "[roster]\nsigner = 'x'", "roster.signer: unknown key"),
        ('name = "north"', 'name = "west"', "'west' is not in epoch 1 of the roster of lungs: "
         "send the coordinator the line of `vertibayes enrol site west`"),
        ('name = "north"', 'name = "dealer"', "'dealer' is the dealer in epoch 1"),
    ],
)  # fmt: skip
def test_mistakes_with_a_roster_are_named_with_file_line_and_mend(site, old, new, reason):
    change(site, old, new)
    with pytest.raises(ValueError, match=r"site\.toml, line ") as caught:
        SiteFile.read(site)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("table", "party", "reason"),
    [
        ('[peers]\nsouth = "{}"', "south", "peers.south: epoch 1 of the roster of lungs has the"),
        ('[dealer]\nname = "dealer"\npublic_key = "{}"', "dealer", "dealer: 'dealer': epoch 1"),
        ('[dealer]\nname = "deal"\npublic_key = "{}"', "dealer", "two dealers: deal, dealer"),
        ('[analysts]\nanalyst = "{}"', "analyst", "analysts.analyst: epoch 1"),
    ],
)
def test_no_party_is_in_the_file_and_in_the_roster(folder, site, table, party, reason):
    key = public_text(read_private(folder / party / f"{party}.key"))
    site.write_text(f"{site.read_text()}\n{table.format(key)}\n")
    with pytest.raises(ValueError, match=r"site\.toml, line ") as caught:
        SiteFile.read(site)
    assert reason in str(caught.value)


def test_a_retired_key_in_the_file_is_refused(folder, site):
    old = public_text(read_private(folder / "south" / "south.key"))
    advance(folder, "revoke south")
    pin(folder, "north", 2)
    site.write_text(f'{site.read_text()}\n[peers]\nwest = "{old}"\n')
    with pytest.raises(ValueError, match=r"peers\.west: this key was revoked at epoch 2"):
        SiteFile.read(site)


@pytest.mark.parametrize("role", ["dealer", "analyst"])
def test_a_roster_without_a_dealer_or_an_analyst_cannot_be_pinned(folder, site, role):
    advance(folder, f"revoke {role}")
    before = site.read_bytes()
    with pytest.raises(ValueError, match=f"names no {role}: the coordinator must enrol one"):
        pin(folder, "north", 2)
    assert site.read_bytes() == before


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("sites = []", "study.sites: missing; expected the sites of the study, of north, south"),
        ('sites = ["north", "west"]', "'west' is not a site in epoch 1"),
    ],
)
def test_a_study_must_name_sites_of_the_roster(folder, new, reason):
    study = file_of(folder, "analyst")
    change(study, 'sites = ["north", "south", "east"]', new)
    with pytest.raises(ValueError, match=r"study\.toml, line ") as caught:
        StudyFile.read(study)
    assert reason in str(caught.value)


def test_without_a_roster_a_study_names_its_sites_with_their_keys(folder):
    study = file_of(folder, "analyst")
    text = study.read_text()
    study.write_text(text[: text.index("[roster]")])
    with pytest.raises(ValueError, match=r"dealer: missing; expected \[dealer\] with name and pub"):
        StudyFile.read(study)


def test_an_edited_roster_is_refused(folder, site):
    """By the signature; and a whole one that is signed again, by the digest."""
    path = site.with_name("roster-1.json")
    path.write_text(path.read_text().replace('"lungs"', '"hearts"'))
    with pytest.raises(ValueError, match="its content was changed after it was signed"):
        SiteFile.read(site)
    advance(folder, "revoke south")
    path.write_bytes((folder / "roster-2.json").read_bytes())
    with pytest.raises(ValueError, match="has another digest") as caught:
        SiteFile.read(site)
    assert "pin it with `vertibayes fetch`; otherwise ask" in str(caught.value)


def test_nobody_takes_a_newer_roster_without_a_pin(folder, site):
    advance(folder, "revoke south")
    assert "south" in SiteFile.read(site).pinned
    pin(folder, "north", 2)
    assert "south" not in SiteFile.read(site).pinned


# ---- pins ----------------------------------------------------------------------------------------


def test_a_pin_changes_two_values_and_keeps_everything_else(folder, site):
    site.chmod(0o640)
    change(site, DIGEST, "  digest  =  ")
    before = site.read_text()
    change(site, 'file = "roster-1.json"', 'file = "roster-1.json" # the newest "one"')
    advance(folder, "revoke south")
    pin(folder, "north", 2)
    after = site.read_text()
    different = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(different) == 2
    assert different[1] == 'file = "roster-2.json" # the newest "one"'
    assert stat.S_IMODE(site.stat().st_mode) == 0o640
    assert not list(site.parent.glob("*.part"))


def test_line_ends_and_the_mark_of_other_systems_stay(folder, site):
    mark = b"\xef\xbb\xbf"
    site.write_bytes(mark + site.read_bytes().replace(b"\n", b"\r\n"))
    advance(folder, "revoke south")
    pin(folder, "north", 2)
    content = site.read_bytes()
    assert content.startswith(mark) and content.count(b"\n") == content.count(b"\r\n")
    assert "south" not in SiteFile.read(site).pinned


def test_a_pin_that_cannot_be_written_leaves_the_file_as_it_is(folder, site, monkeypatch):
    advance(folder, "revoke south")
    before = site.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        pin(folder, "north", 2)
    assert caught.value.filename == str(site) and site.read_bytes() == before
    assert not list(site.parent.glob("*.part"))


def test_a_value_that_spans_lines_is_left_to_the_owner(folder, site):
    change(site, '"roster-1.json"', '"""\\\nroster-1.json"""')
    advance(folder, "revoke south")
    with pytest.raises(
        ValueError, match=r'roster\.file: cannot be written.*write file = "roster-2'
    ):
        pin(folder, "north", 2)


def test_the_same_roster_is_pinned_once(folder):
    assert pin(folder, "north", 1) == ()


def test_an_older_roster_is_not_pinned(folder, site):
    advance(folder, "revoke south")
    pin(folder, "north", 2)
    before = site.read_bytes()
    with pytest.raises(ValueError, match="its epoch is 1, and epoch 2 is pinned"):
        pin(folder, "north", 1)
    assert site.read_bytes() == before


def test_without_the_pinned_roster_nothing_can_be_compared(folder, site):
    advance(folder, "revoke south")
    site.with_name("roster-1.json").unlink()
    with pytest.raises(ValueError, match=r"roster-1\.json: no such file; ask the coordinator"):
        pin(folder, "north", 2)


def test_a_relay_pins_nothing(folder):
    relay, roster = folder / "relay" / "relay.toml", folder / "roster-1.json"
    with pytest.raises(ValueError, match="not the file of a site, dealer or study"):
        pinning(relay, roster, read_roster(roster))


def test_new_analysts_are_named_where_a_site_answers_any_query(folder, site):
    advance(folder, enrolment_line("analyst", "ben", make_private(folder / "ben.key")))
    assert not any("warning" in line for line in pin(folder, "south", 2))
    change(site, "# free_tables = false", "free_tables = true")
    said = [line for line in pin(folder, "north", 2) if line.startswith("warning")]
    assert len(said) == 1 and "free_tables = true: ben may ask any query" in said[0]


# ---- a new key of one's own ----------------------------------------------------------------------


def test_a_rotated_key_is_used_from_the_pin_on(folder, site):
    old = own_keys(SiteFile.read(site))
    lines, key = rotated(folder)
    assert key.name == "north.2.key" and "own key:     north.2.key, in place of north.key" in lines
    file = SiteFile.read(site)
    assert file.key == key and own_keys(file).public != old.public
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    pin(folder, "south", 2)
    assert SiteFile.read(file_of(folder, "south")).pinned["north"] == own_keys(file).public


def test_rotate_can_be_repeated_until_the_roster_has_the_key(site):
    first = rotate(site)
    assert rotate(site) == first
    assert sorted(path.name for path in site.parent.glob("*.key")) == ["north.2.key", "north.key"]


def test_a_second_rotation_makes_a_third_key(folder, site):
    rotated(folder)
    line, key = rotate(site)
    advance(folder, line, epoch=2)
    pin(folder, "north", 3)
    assert key.name == "north.3.key" and SiteFile.read(site).key == key


def test_the_old_key_is_refused_after_the_rotation(folder, site):
    rotated(folder)
    change(site, '"north.2.key"', '"north.key"')
    with pytest.raises(
        ValueError, match=r"north\.key is not the key of north in epoch 2"
    ) as caught:
        own_keys(SiteFile.read(site))
    assert "it was rotated at epoch 2; set `key` to the file of the new key" in str(caught.value)
    with pytest.raises(ValueError, match="fetch the newest bundle"):
        rotate(site)


def test_an_own_key_that_is_not_in_the_roster_is_named(folder, site):
    site.with_name("north.key").unlink()
    keys = make_private(site.with_name("north.key"))
    with pytest.raises(ValueError, match="set `key` to the file of that key"):
        own_keys(SiteFile.read(site))
    advance(folder, "revoke south")
    with pytest.raises(
        ValueError, match=r"site\.key: epoch 2 .* has the key vb1:.* of north, which"
    ):
        pin(folder, "north", 2)
    advance(folder, "revoke north", enrolment_line("site", "north", keys), epoch=2)
    pin(folder, "north", 3)
    assert own_keys(SiteFile.read(site)).public == keys.public


def test_a_revoked_party_cannot_pin_and_learns_why(folder):
    advance(folder, "revoke south")
    with pytest.raises(
        ValueError, match=r"'south' is not in epoch 2.*its key was revoked at epoch 2"
    ):
        pin(folder, "south", 2)


def test_without_a_roster_no_key_is_rotated(folder, site):
    text = site.read_text()
    site.write_text(text[: text.index("[roster]")])
    with pytest.raises(ValueError, match="without a roster, make a key with `vertibayes keygen`"):
        rotate(site)


def test_approvals_that_a_rotation_makes_void_are_named(folder):
    contract = contract_of(StudyFile.read(file_of(folder, "analyst")))
    south = SiteFile.read(file_of(folder, "south"))
    write_approval(south.approved, Approval(contract, "A. Owner", "2026-01-01"))
    rotated(folder)
    said = [line for line in pin(folder, "south", 2) if line.startswith("void")]
    assert len(said) == 1 and "another key of north; approve the study again" in said[0]
    assert contract.digest.hex()[:4] in said[0]


# ---- two epochs ----------------------------------------------------------------------------------


def test_check_and_approve_name_both_epochs(folder, site):
    rotated(folder)
    said = check_files(sorted(folder.glob("*/*.toml")), QUIET).lines
    both = [text for how, text in said if how == "warning" and "several rosters" in text]
    assert len(both) == 1 and "north: epoch 2" in both[0] and "south: epoch 1" in both[0]
    assert any("pins a key of north that north does not use" in text for text in wrong(folder))
    study = StudyFile.read(file_of(folder, "analyst"))
    with pytest.raises(ValueError, match="not the public key of this site"):
        approvable(study, SiteFile.read(site))
    pin(folder, "analyst", 2)
    study = StudyFile.read(file_of(folder, "analyst"))
    with pytest.raises(ValueError, match=r"the study has pinned epoch 2 .*, this site epoch 1"):
        approvable(study, SiteFile.read(file_of(folder, "south")))


def test_read_any_knows_files_whose_keys_are_in_a_roster(folder):
    kinds = {party: read_any(file_of(folder, party)).kind for party in ROLES}
    assert kinds == {**dict.fromkeys(SITES, "site"), "dealer": "dealer", "analyst": "study"}
    assert read_roster(folder / "roster-1.json") == SiteFile.read(file_of(folder, "north")).roster
