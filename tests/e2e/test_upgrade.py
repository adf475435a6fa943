"""Parties of the last release and of this one, with certificates: what they keep, and the relay."""

from __future__ import annotations

import importlib.util

import pytest

from tests.e2e.releases import NEW, OLD, PARTIES, RELAY, Releases, last_release
from tests.protocols.deployment.parties import RECORDS, change

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nvflare") is None,
    reason="the last release needs NVFlare: `make test-flare` runs it",
)

QUESTION = "sex", ["age"]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return last_release(tmp_path_factory.mktemp("last release"))


@pytest.mark.parametrize(
    ("relay", "analyst", "said"),
    [
        (NEW, OLD, "the relay cannot be reached"),
        (OLD, NEW, "shows no certificate of this study's relay"),
    ],
)
def test_a_party_and_a_relay_of_other_releases_do_not_meet(old, tmp_path, relay, analyst, said):
    """Their networks differ: the party says so, and no process ends without a word."""
    with Releases(old, tmp_path / "all") as releases:
        releases.start(**{RELAY: relay})
        assert said in releases.count(analyst, QUESTION)[2]


def test_a_site_reads_the_folder_of_the_last_release_and_refuses_changed_records(old, tmp_path):
    """And what the last release does with a newer memory: it does not damage it."""
    with Releases(old, tmp_path / "all", one_memory=True) as releases:
        north = releases.folder / "north"
        releases.start(**dict.fromkeys((RELAY, *PARTIES), OLD))
        first = releases.count(OLD, QUESTION)[2]
        ledger = lines_of(north, "ledger.jsonl")
        releases.start(**dict.fromkeys((RELAY, *PARTIES), NEW))
        tables = releases.count(NEW, QUESTION, ("drug", ["sex"]))[2]
        assert tables[0] == first[0] and sum(sum(row) for row in tables[1]) == RECORDS
        assert lines_of(north, "ledger.jsonl")[: len(ledger)] == ledger
        releases.stop(["north"])
        row = (north / "records.csv").read_text().splitlines()[1]
        other = row[: -len(row.rpartition(",")[2])] + ("m" if row.endswith("f") else "f")
        change(north / "records.csv", row + "\n", other + "\n")
        releases.start(north=NEW)
        assert "changed" in releases.count(NEW, ("sex", ["drug"]))[2]
        releases.stop(["north"])
        before = {path: path.read_bytes() for path in (north / "memory").iterdir()}
        releases._start("north", OLD)
        said = releases.running["north"].wait_for("", "")
        assert "ready" in said or "vertibayes: " in said, said
        releases.stop(["north"])
        assert {path: path.read_bytes() for path in (north / "memory").iterdir()} == before


def lines_of(site, name):
    """Return the lines of a file in a site's memory."""
    return (site / "memory" / name).read_text().splitlines()
