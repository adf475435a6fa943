"""Attacks on people with rare values: a flag that a few carry, and the name of one person's state.

The analyst is given flag -> x, x -> y. Under `cut` all counts of those without the flag are exact,
and sums of the tables give those of the carriers.
"""

import numpy as np
import pytest

from tests.documents import ROOT, scripts
from tests.protocols.deployment.parties import change, deployment, records, write_csv
from tests.protocols.small import packets, seeded
from tests.protocols.test_approved_studies import approve, contract_of
from vertibayes_protocols.approved_study import open_approved
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import FREE, Policy
from vertibayes_protocols.queries import Describe
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Variable

RECORDS = 403
FAMILIES = Family("flag"), Family("x", ("flag",)), Family("y", ("x",))
NAME = "Dr Jane Roe's assistant"


def world(carriers, policy=None):
    """Return sites of which one has a flag that a few people carry, and the carriers' counts."""
    draw = np.random.default_rng(carriers)
    flag = np.zeros(RECORDS, np.uint8)
    flag[draw.choice(RECORDS, carriers, replace=False)] = 1
    x, y = draw.integers(0, 3, (2, RECORDS)).astype(np.uint8)
    variables = {n: Variable(n, ("0", "1", "2")) for n in "xy"} | {
        "flag": Variable("flag", ("0", NAME))
    }
    data = {
        "a": SiteData({"flag": variables["flag"]}, {"flag": flag}),
        "b": SiteData({n: variables[n] for n in "xy"}, {"x": x, "y": y}),
    }
    return seeded(data, policy=policy or Policy()), np.bincount(x[flag == 1], minlength=3)


def released(federation, rule, families=FAMILIES):
    """Run an approved study that states the families."""

    def steps(study):
        yield FamilyTables(families, False, rule)

    names = tuple(family.child for family in families)
    contract = contract_of(federation, variables=names, rule=rule)
    approve(federation, contract, learner=steps)
    study = open_approved(federation.session, contract, bytes(16))
    return study.release(next(steps(study.study)))


def subtracted(tables):
    """Return what the sums say of the carriers: how many have each x."""
    _, x, y = tables
    return y.sum(axis=0) - x[:, 0]


def bytes_of(seen):
    """Return all packets as one."""
    return b"".join(bytes(part) for _, packet in seen for part in packet)


def known(tables, rule, members):
    """Return how many small counts linear programs find, and how many there are."""
    with scripts(ROOT / "benchmarks", "known_counts") as [module]:
        named = [module.CountTable(*each) for each in zip(members, tables, strict=True)]
        found = module.Programs(named, [rule], RECORDS).known()
    assert not found.unsolved
    return found.known, found.small


@pytest.mark.parametrize("carriers", range(1, 10))
def test_a_cut_study_with_a_flag_of_a_few_people_is_refused(carriers, monkeypatch):
    with packets(monkeypatch) as seen:
        federation, _ = world(carriers)
        with pytest.raises(QueryRefusedError) as refused:
            released(federation, Rule("cut"))
    assert refused.value.site == "a" and "fewer than 10 people have a state" in str(refused.value)
    assert NAME not in refused.value.reason and not federation.session.role.ledger.tables
    assert seen and NAME.encode() not in bytes_of(seen)


@pytest.mark.parametrize("carriers", range(1, 10))
def test_a_site_that_answers_freely_shows_all_counts_of_the_carriers(carriers, monkeypatch):
    """The control: a cut without the refusal."""
    with packets(monkeypatch) as seen:
        federation, true = world(carriers, FREE)
        tables = released(federation, Rule("cut"))
    assert np.array_equal(subtracted(tables), true) and NAME.encode() in bytes_of(seen)


@pytest.mark.parametrize("carriers", range(1, 10))
def test_rounded_tables_show_no_count_of_the_carriers(carriers):
    federation, _ = world(carriers)
    tables = released(federation, Rule("rounded"))
    assert not any((table % 10).any() for table in tables)
    exact = released(world(carriers, FREE)[0], Rule("exact"))
    members = [family.members for family in FAMILIES]
    assert known(exact, Rule("rounded"), members)[0] == 0
    found, small = known(exact, Rule("cut"), members)
    assert 0 < found == small


def test_ten_people_are_not_a_few():
    federation, _ = world(10)
    assert released(federation, Rule("cut"))[0].tolist() == [RECORDS - 10, 10]


# ---- names of states -----------------------------------------------------------------------------


def described(folder, monkeypatch):
    """Return all that leaves a site in which one person's record has a name, when it describes."""
    data = read_data(SiteFile.read(folder / "south" / "site.toml"))
    with packets(monkeypatch) as seen:
        federation = seeded({"south": data}, policy=FREE)
        federation.session.ask(Describe(("south",)))
    return data, bytes_of(seen)


@pytest.fixture
def folder(tmp_path):
    folder, (ids, texts) = deployment(tmp_path / "all", free=False), records()
    texts["drug"] = texts["drug"].astype("U40")
    texts["drug"][7] = NAME
    texts["drug"][8:17] = "rare"
    write_csv(folder / "south" / "records.csv", ids, texts, ("pulse", "drug"))
    return folder


def test_a_state_that_one_person_has_does_not_leave_under_its_name(folder, monkeypatch):
    data, left = described(folder, monkeypatch)
    assert b"acme" in left and NAME.encode() not in left and b"rare" not in left
    assert data.variables["drug"].states == ("acme", "none", "zeta", "other")
    assert np.bincount(data.codes["drug"])[3] == 10
    said = (
        f"drug: {NAME!r}, 'rare': 2 states are one, 'other'; fewer than 10 records have each; "
        '"drug" = { states = [...] } keeps those it lists, rare_states = "keep" in [data] all'
    )
    assert said in data.report.message()  # the owner reads it


@pytest.mark.parametrize("choice", ["keep", "free"])
def test_the_owner_can_keep_the_name(folder, monkeypatch, choice):
    """The control."""
    site = folder / "south" / "site.toml"
    if choice == "keep":
        change(site, '# rare_states = "merge"', 'rare_states = "keep"')
    else:
        change(site, "# free_tables = false", "free_tables = true")
    _, left = described(folder, monkeypatch)
    assert NAME.encode() in left and b"rare" in left
