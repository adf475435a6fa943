"""Parties of the last release and of this one, over the real transport, with certificates."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tests.e2e.releases import DEALER, NEW, OLD, PARTIES, RELAY, Releases, last_release
from tests.protocols.deployment.parties import RECORDS, SITES, change
from vertibayes_protocols import RELEASE
from vertibayes_protocols.wire import VERSION

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nvflare") is None,
    reason="NVFlare is not installed: pip install 'vertibayes[nvflare]'",
)

SECONDS = 3.0
NAMED = f"version {VERSION} of the protocols (vertibayes {RELEASE})", "an older one (vertibayes 0.1"
QUESTION = "sex", ["age"]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return last_release(tmp_path_factory.mktemp("last release"))


@pytest.fixture(scope="module")
def releases(old, tmp_path_factory):
    with Releases(old, tmp_path_factory.mktemp("mixtures") / "all") as releases:
        yield releases


def mixtures():
    """Return all releases of relay, dealer, sites and analyst; each differs in one from the last.

    A relay is restarted once, and the analyst's process is the quickest to start.
    """
    for number in range(16):
        code = number ^ number >> 1
        yield [NEW if code >> place & 1 else OLD for place in (3, 2, 1, 0)]


@pytest.mark.parametrize(("relay", "dealer", "sites", "analyst"), list(mixtures()))
def test_both_ends_name_both_versions_within_three_seconds(
    releases, relay, dealer, sites, analyst, record_property
):
    releases.start(**{RELAY: relay})
    releases.start(**dict.fromkeys(SITES, sites), **{DEALER: dealer})
    check_names(releases, analyst, record_property)


@pytest.mark.parametrize("analyst", [OLD, NEW])
@pytest.mark.parametrize("others", [OLD, NEW])
def test_one_site_of_another_release_is_named(releases, others, analyst, record_property):
    releases.start(**{RELAY: NEW})
    mixed = dict.fromkeys(PARTIES, others) | {"north": NEW if others == OLD else OLD}
    releases.start(**mixed)
    check_names(releases, analyst, record_property)


def check_names(releases, analyst, record_property):
    """Begin a session; check what the analyst and each party of another release say, and when."""
    for party in PARTIES:
        seen(releases.running[party])
    begun, ended, result = releases.count(analyst, QUESTION)
    others = [party for party in PARTIES if releases.releases[party] != analyst]
    if not others:  # the control: they count, whatever the relay's release
        assert len(result[0]) == 2, result
        return
    seconds = {"analyst": ended - begun}
    assert all(name in result for name in NAMED), result
    for party in others:
        seconds[party] = releases.seconds_until(party, "install the same release", begun)
        said = releases.running[party].seen[-1]
        assert all(name in said for name in NAMED), said
    record_property("seconds", seconds)
    sys.stdout.write(f"{ {party: round(number, 2) for party, number in seconds.items()} }\n")
    assert max(seconds.values()) < SECONDS, seconds


def seen(process):
    """Pass over what a party has logged so far."""
    while not process.lines.empty():
        process.seen.append(process.lines.get())


@pytest.mark.parametrize("release", [OLD, NEW])
def test_commands_show_one_error_that_names_both(releases, tmp_path, release):
    releases.start(**{RELAY: NEW})
    releases.start(**dict.fromkeys(PARTIES, NEW if release == OLD else OLD))
    code, said = releases.vertibayes(release, "check", releases.study(release), "--meet")
    wrong = [line for line in said.splitlines() if line.startswith("wrong")]
    assert code == 2 and len(wrong) == 1 and all(name in wrong[0] for name in NAMED), said
    code, said = releases.vertibayes(
        release, "learn", releases.study(release), "--out", tmp_path / "out"
    )
    lines = said.splitlines()
    assert code == 2 and all(name in lines[-1] for name in NAMED), said
    assert "Traceback" not in said and "cannot be read" not in said


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
