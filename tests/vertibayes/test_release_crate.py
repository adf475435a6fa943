"""`ro-crate-metadata.json` of a release: what it says, and that it says nothing of a record."""

import hashlib
import json
import re

import pytest

from tests.vertibayes.test_release_folder import LEDGER, VARIABLES, released
from vertibayes import __version__
from vertibayes.report.release import write_release
from vertibayes_protocols.release import Rule

DIGEST = "ab" * 32
SITES = ("clinic", "hospital")
DATE = re.compile(r'"(datePublished|endTime)": "[0-9T:+-]+"')
OF_RESULTS = re.compile(r'"results\.json",\n.*?}', re.DOTALL)  # which has dates


def crate_of(folder, study=None):
    write_release(folder, *released(Rule("exact")), ledger=LEDGER, study=study, sites=SITES)
    text = (folder / "ro-crate-metadata.json").read_text()
    entities = {each["@id"]: each for each in json.loads(text)["@graph"]}
    assert len(entities) == len(json.loads(text)["@graph"])
    return text, entities


@pytest.fixture
def crate(tmp_path):
    return crate_of(tmp_path / "release", {"contract": DIGEST})[1]


def references(value):
    """Yield the places to which an entity points."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield each["@id"]


def test_each_file_is_a_part_with_its_digest(crate, tmp_path):
    folder = tmp_path / "release"
    parts = {each["@id"] for each in crate["./"]["hasPart"]}
    files = {path.name for path in folder.iterdir() if path.is_file()}
    assert parts == files - {"ro-crate-metadata.json"}
    for name in parts:
        content = (folder / name).read_bytes()
        assert crate[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert crate[name]["contentSize"] == str(len(content)) and crate[name]["description"]


def test_each_place_that_an_entity_points_to_is_in_the_crate(crate):
    places = {p for each in crate.values() for v in each.values() for p in references(v)}
    outside = {place for place in places if place not in crate}
    assert all(
        place.startswith(("https://w3id.org/shp#", "https://w3id.org/ro/")) for place in outside
    )
    assert crate["./"]["name"] and crate["./"]["description"] and crate["./"]["license"]


def test_who_ran_what_and_who_approved_it(crate):
    run = crate["#run"]
    assert crate[run["agent"]["@id"]]["name"] == "analyst"
    assert crate[run["instrument"]["@id"]]["version"] == __version__
    assert crate["#contract"]["value"] == DIGEST and {"@id": "#contract"} in run["object"]
    assert len(run["result"]) == 4
    signed = [each for place, each in crate.items() if place.startswith("#sign-off")]
    assert [crate[each["agent"]["@id"]]["name"] for each in signed] == list(SITES)
    assert all(DIGEST in each["name"] for each in signed)


def test_the_disclosure_check_is_pending_and_the_profile_is_not_claimed(crate):
    check = crate["#disclosure"]
    assert check["actionStatus"].endswith("PotentialActionStatus") and "endTime" not in check
    assert {"@id": "#disclosure"} in crate["./"]["mentions"]
    assert "conformsTo" not in crate["./"]


def test_a_run_in_one_process_has_no_approval(tmp_path):
    text, entities = crate_of(tmp_path / "release")
    assert "#contract" not in entities and "ign-off" not in text


def test_two_crates_of_one_release_differ_in_dates_alone_and_quote_no_value(tmp_path):
    first, second = (crate_of(tmp_path / name, {"contract": DIGEST})[0] for name in "ab")
    cut = [OF_RESULTS.sub("", DATE.sub("", text)) for text in (first, second)]
    assert cut[0] == cut[1] and len(cut[0]) > 5000
    assert not any(f'"{s}"' in first for v in VARIABLES.values() for s in v.states)
    assert "mid, or so" not in first
