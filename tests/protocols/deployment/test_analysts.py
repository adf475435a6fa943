"""Files that name several analysts."""

from pathlib import Path
from shutil import copytree

import pytest

from tests.e2e.command import run
from tests.protocols.deployment.parties import SITES, change, changed_key, deployment
from vertibayes_protocols.deployment.checks import Outside, check_files, read_any
from vertibayes_protocols.deployment.files import DealerFile, SiteFile, StudyFile, own_keys
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.deployment.roster.pinning import Own
from vertibayes_protocols.deployment.running import dealer_role
from vertibayes_protocols.deployment.templates import Names, init
from vertibayes_protocols.public_keys import encode_public

ANALYSTS = "ana", "ben"
QUIET = Outside(*(lambda *_: None for _ in range(3)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return deployment(tmp_path_factory.mktemp("made") / "all", free=False, analysts=ANALYSTS)


@pytest.fixture
def folder(made, tmp_path):
    return Path(copytree(made, tmp_path / "all"))


def key_of(folder, party):
    return read_private(folder / party / f"{party}.key").public


def test_sites_and_dealer_serve_all_analysts_that_init_names(folder):
    keys = {name: key_of(folder, name) for name in ANALYSTS}
    site = SiteFile.read(folder / "north" / "site.toml")
    dealer = DealerFile.read(folder / "dealer" / "dealer.toml")
    for file in (site, dealer):
        assert file.analysts == keys and keys.items() <= file.pinned.items()
    for name in ANALYSTS:
        study = StudyFile.read(folder / name / "study.toml")
        assert study.party == name and study.sites == SITES
        assert not set(ANALYSTS) & set(study.pinned)


def test_a_study_that_names_its_dealer_is_the_file_of_its_analyst(folder):
    for party, role in {"ana": "analyst", "north": "site", "dealer": "dealer"}.items():
        (path,) = (folder / party).glob("*.toml")
        own = Own.read(path)
        assert (own.role, own.party) == (role, party)


def test_masks_are_agreed_with_no_analyst(folder):
    role = dealer_role(DealerFile.read(folder / "dealer" / "dealer.toml"))
    assert set(role.public_keys) == set(SITES)


def test_check_compares_the_keys_of_all_analysts(folder):
    files = sorted(folder.glob("*/*.toml"))
    assert not [text for how, text in check_files(files, QUIET).lines if how == "wrong"]
    (folder / "ben" / "ben.key").unlink()
    make_private(folder / "ben" / "ben.key")
    wrong = [text for how, text in check_files(files, QUIET).lines if how == "wrong"]
    assert len(wrong) == 4 and all("pins a key of ben that ben does not use" in t for t in wrong)


@pytest.mark.parametrize("analyst", ANALYSTS)
def test_each_analyst_has_its_studies_approved_under_its_own_key(capsys, folder, analyst):
    own = folder / "north" / "site.toml"
    study = folder / analyst / "study.toml"
    code, shown, error = run(capsys, "approve", study, "--site", own, "--yes")
    assert code == 0 and f"Study of {analyst} with" in shown, error
    line = next(line for line in shown.splitlines() if line.startswith("Digest: "))
    checked = run(capsys, "check", study)[1]
    assert f"the digest of the study is {line.removeprefix('Digest: ')}" in checked


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("ben = ", "east = ", "a site has that name, an analyst is another party"),
        ("ben = ", "dealer = ", "the dealer has that name, an analyst is another party"),
        ("ben = ", "north = ", "a site has that name, an analyst is another party"),
        ("ben = ", "relay = ", "analysts.relay: 'relay' is not a valid name"),
        ("[analysts]", '[analyst]\nname = "x"\n[analysts]', "also has [analysts]: name all"),
    ],
)
def test_mistakes_in_the_list_of_analysts_are_named(folder, old, new, reason):
    site = folder / "north" / "site.toml"
    change(site, old, new)
    with pytest.raises(ValueError, match=r"site\.toml, line ") as caught:
        SiteFile.read(site)
    assert reason in str(caught.value)


@pytest.mark.parametrize("other", ["ana", "east", "dealer"])
@pytest.mark.parametrize("file", ["north/site.toml", "dealer/dealer.toml"])
def test_an_analyst_with_the_key_of_another_party_is_refused(folder, file, other):
    changed_key(folder / file, "ben", encode_public(key_of(folder, other)))
    with pytest.raises(ValueError, match=r"it has the public key of|this party's own public key"):
        own_keys(read_any(folder / file))


def test_a_list_without_analysts_is_refused(folder):
    site = folder / "north" / "site.toml"
    text = "".join(
        line
        for line in site.read_text().splitlines(keepends=True)
        if not line.startswith(("ana = ", "ben = "))
    )
    site.write_text(text)
    with pytest.raises(ValueError, match="analysts: it is empty; name at least one analyst"):
        SiteFile.read(site)


def test_init_needs_different_names_of_analysts(tmp_path):
    for analysts, reason in (((), "--analyst is empty"), (("a", "a"), "appears twice")):
        with pytest.raises(ValueError, match=reason):
            init(tmp_path / "x", Names(("s",), analysts=analysts))
