"""A year of a consortium, in simulated time: what each month may not take from anybody."""

from __future__ import annotations

import json
import re
from random import Random

import numpy as np
import pytest

from tests.simulation.consortium_year import COLUMNS, MONTH, Year
from tests.simulation.faults import Fault
from tests.simulation.oracle import charged, noted_tables
from tests.simulation.schedule import simulated
from tests.simulation.world import World
from vertibayes_protocols.queries.opening import heads
from vertibayes_protocols.storage.ledger_file import compared

FAULTS = "kill", "stop", "power", "torn", "freeze", "lose", "no receipt", "slow", "relay", "full"
POINTS = 5_000  # of a year without faults


@pytest.fixture(params=["without faults", "with faults", "with other faults"])
def year(request):
    draw, faults = Random(request.param), []
    if request.param != "without faults":
        faults = [
            Fault(draw.randint(1, POINTS), draw.choice(FAULTS), True, draw.random())
            for _ in range(20)
        ]
    world = World("year", faults)
    with simulated(world) as system:
        yield Year(world, system)


def month(year):
    year.world.pass_(MONTH)


def test_a_year_of_extracts_corrections_keys_disks_and_members(year):
    released = dict.fromkeys(COLUMNS, 0)

    def release(approved=None):
        tables = year.run(approved or year.study())
        for site in year.sites:
            released[site] += len(tables)

    release()  # December: by a release without chains, whose files all sites have
    for site in "ab":
        year.as_older_release(site)
    month(year)
    release()  # January: the upgrade goes on with what was used
    assert {site: charged(year.sites[site]) for site in "ab"} == {"a": 4, "b": 4}
    february = year.back_up("a")
    month(year)
    year.correct("a", 12)
    release()  # February: another extract, approved beside the earlier ones
    month(year)
    year.correct("b", 1)  # March: one value, which its owner has not seen
    march = year.study(unaware="b")
    assert "b refuses: fewer than 10 records have changed" in year.refusal(march)
    year.correct("b", 1), year.correct("b", 1)  # as it was: the refusal blocks nothing
    release(march)
    month(year)
    year.rotate("b")
    release()  # April: under another key
    month(year)
    year.restore("b", {})  # May: a new disk, the study approved again, one value corrected
    year.correct("b", 1)
    lost = year.study()
    for _ in range(3):
        assert "b has forgotten" in year.refusal(lost)
    assert charged(year.sites["b"]) == 0 and charged(year.sites["a"]) == released["a"]
    year.accept("a", "b")
    released["b"] = 0
    release(lost)
    month(year)
    newest = year.back_up("a")
    year.restore("a", february)  # June: an older backup, and then the newest
    since_february = r"a refuses: it has forgotten \d+ sessions with b"
    assert re.match(since_february, year.refusal(year.study()))
    year.restore("a", newest)
    release()
    month(year)
    year.pin("a", "b", "c")
    release()  # July: a new member
    month(year)
    past = year.study(until="2027-01-01")
    assert "its approval ended on 2027-01-01" in year.refusal(past)
    for _ in range(5):  # August to December
        year.correct("c", 15)
        release()
        month(year)
    year.allow("a", released["a"] + 2)
    assert "most_released_tables" in year.refusal(year.study())  # of three tables, two are left
    for name, site in year.sites.items():
        assert charged(site) == released[name]
        assert compared(site.folder / "ledger", site.folder / "memory")[2] == []
    entries = map(json.loads, (year.sites["a"].folder / "ledger").read_text().splitlines())
    dates = [entry["at"] for entry in entries if "at" in entry]
    assert dates == sorted(dates) and (dates[0][:7], dates[-1][:7]) == ("2027-01", "2028-02")
    assert noted_tables(year.sites["c"]) == charged(year.sites["c"])


@pytest.mark.parametrize("year", ["without faults"], indirect=True)
def test_without_heads_a_lost_disk_shows_one_person(year, monkeypatch):
    """The control: the difference of two releases is the person whose value was corrected."""

    def nothing(site, peers):
        yield from ()
        return ""

    monkeypatch.setattr(heads, "exchange_heads", nothing)
    _, before = year.run(year.study())
    year.restore("b", {})
    year.correct("b", 1)
    _, after = year.run(year.study())
    changed = np.argwhere(np.array(before) != np.array(after))
    assert set(changed[:, 1]) == {year.codes["x"][0]}  # what `a` has of this person
