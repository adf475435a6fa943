"""Attacks by two studies over data that grow and are corrected: what both show of a few people.

An analyst who runs an approved study again on newer data subtracts its tables. The sites compare
the data with those of all earlier studies first; the control runs with this comparison left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest

from tests.privacy.test_attacks_on_approved_studies import begun, federation_of, releasing
from tests.randomness import SeededRandomness
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Variable

EXACT, CUT, ROUNDED = Rule("exact"), Rule("cut", fewest=10), Rule("rounded")
NOISY = Rule("gaussian", epsilon=0.2)  # five studies use up most_epsilon = 1
BINS = 1 / 12  # eleven people leave eleven bins: more than ten records change
SEEDS = count()  # each study has another name
POLICY = Policy()
DOES_NOT_MIND = Policy(fewest_records=1)  # the unsafe variant: nothing is compared
TABLES = {  # file, records, the column that is corrected, and a column of few states
    "bank": ("uci/bank-full.csv.gz", 5000, "balance", "job"),
    "pima": ("uci/pima-diabetes.csv.gz", 768, "glucose", "age"),
    "adult": ("uci/adult_train.csv.gz", 5000, "age", "education"),
}


@pytest.fixture(params=TABLES)
def world(request, data_folder):
    """A table, and the name of the column that is corrected."""
    return table_of(data_folder, request.param), TABLES[request.param][2]


def table_of(data_folder, table):
    """Return the first records of a table, each of a person."""
    file, records, *_ = TABLES[table]
    frame = pd.read_csv(data_folder / file, dtype=str, keep_default_na=False).head(records)
    frame.insert(0, "person", [f"person {k}" for k in range(len(frame))])
    return frame


def new_memories():
    return {site: SiteMemory(randomness=SeededRandomness(site.encode())) for site in "ab"}


def sites_of(frame, memories, *, frozen=True):
    """Split a table's columns in two; columns of earlier studies keep their states and bins."""
    names = [name for name in frame.columns if name != "person"]
    parts = {"a": names[::2], "b": names[1::2]}
    return {
        site: SiteData.from_frame(
            frame[["person", *columns]],
            Encoding(bins=BINS, earlier=memories[site].states if frozen else {}),
            site=site,
            ids="person",
            strict=False,
        )
        for site, columns in parts.items()
    }


def released(
    frame, memories, name, rule, *, frozen=True, policy=POLICY, approved=False, columns=()
):
    """Release the table of each variable with one of them, by the study that all owners approved.

    `approved`: the owners have approved it with these data, beside those of earlier studies.
    """
    data = sites_of(frame, memories, frozen=frozen)
    others = [v for site in data.values() for v in site.variables if v != name]
    if columns:
        others = [v for v in others if v in columns]
    families = tuple(Family(other, (name,)) for other in others)
    says = None if rule == CUT else rule  # refused if it says cut: test_attacks_on_rare_states
    options = {
        "policy": policy,
        "memories": memories,
        "rule": says,
        "variables": (name, *others),
        "seed": b"%d" % next(SEEDS),
    }
    federation, contract = federation_of(data, releasing(rule, *families), **options)
    with federation:
        if approved:
            approve(federation, contract, data, memories, rule, approved)
        tables = begun(federation, contract).release(FamilyTables(families, False, rule))
    return {other: np.asarray(table) for other, table in zip(others, tables, strict=True)}


def approve(federation, contract, data, memories, rule, given):
    """Have each owner approve the study with these data, or as `given` by site."""
    for site, role in federation.roles.items():
        beside = (
            memories[site].beside_earlier(data[site], rule.name if contract.rule else "", 10).data
        )
        beside = given[site] if isinstance(given, dict) else beside
        known = replace(role.approvals(contract.digest), data=beside)
        role.approvals = {contract.digest: known}.get


def read_rows(before, after, bins):
    """Return, by bin, the row of the person who alone left it: the values where a count fell."""
    rows = {}
    for bin_ in range(bins):
        falls = {name: after[name][:, bin_] - table[:, bin_] for name, table in before.items()}
        if all((fall == -1).sum() == 1 and (fall != 0).sum() == 1 for fall in falls.values()):
            rows[bin_] = {name: int(fall.argmin()) for name, fall in falls.items()}
    return rows


def corrected(frame, name, bins):
    """Correct a value in each bin except the last: the person then is in the last bin.

    Return the table, and the record of the person who leaves each bin.
    """
    codes = SiteData.from_frame(frame[[name]], Encoding(bins=BINS)).codes[name]
    firsts = [int(np.flatnonzero(codes == bin_)[0]) for bin_ in range(bins)]
    after = frame.copy()
    after.loc[after.index[firsts[:-1]], name] = frame[name].iloc[firsts[-1]]
    return after, firsts[:-1]


# ---- corrections ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [EXACT, CUT], ids=["exact", "cut"])
def test_corrections_read_the_rows_of_nobody(world, rule):
    frame, name = world
    memories = new_memories()
    before = released(frame, memories, name, rule)
    after, _ = corrected(frame, name, before[next(iter(before))].shape[1])
    with pytest.raises(QueryRefusedError, match="noise of both"):
        released(after, memories, name, rule)


def test_control_with_nothing_compared_corrections_read_whole_rows(world):
    frame, name = world
    memories = new_memories()
    before = released(frame, memories, name, EXACT, policy=DOES_NOT_MIND)
    bins = before[next(iter(before))].shape[1]
    after, gone = corrected(frame, name, bins)
    rows = read_rows(before, released(after, memories, name, EXACT, policy=DOES_NOT_MIND), bins)
    data = sites_of(frame, memories)
    values = {v: site.codes[v] for site in data.values() for v in site.variables if v != name}
    assert len(rows) == len(gone) >= 10
    for bin_, row in rows.items():
        assert row == {v: int(codes[gone[bin_]]) for v, codes in values.items()}


def test_the_owner_may_approve_the_corrected_data_beside_the_earlier_ones(world):
    frame, name = world
    memories = new_memories()
    before = released(frame, memories, name, EXACT)
    bins = before[next(iter(before))].shape[1]
    after, gone = corrected(frame, name, bins)
    tables = released(after, memories, name, EXACT, approved=True)
    assert len(read_rows(before, tables, bins)) == len(gone)  # what the owner was told


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "moved"])
def test_bins_that_move_with_a_correction_are_seen(world, frozen):
    """An edge that moves gives bins new names: without the earlier ones, all values differ."""
    frame, name = world
    memories = new_memories()
    released(frame, memories, name, EXACT)
    after = frame.copy()
    ascending = pd.to_numeric(frame[name]).sort_values().index
    after.loc[ascending[:30], name] = frame[name].loc[ascending[-1]]  # the edges move
    data = sites_of(after, memories, frozen=frozen)["ab"[list(frame.columns).index(name) % 2 == 0]]
    states = memories["ab"[list(frame.columns).index(name) % 2 == 0]].states[name]
    assert (data.variables[name].states == states) == frozen
    with pytest.raises(QueryRefusedError, match=r"bins of a column|noise of both"):
        released(after, memories, name, EXACT, frozen=frozen)


@pytest.mark.parametrize(
    ("earlier", "states", "kept"),
    [
        (("le_1", "gt_1"), ("le_2", "gt_2"), ("le_1", "gt_1")),  # bins are not united
        (("no", "yes"), ("maybe", "yes"), ("no", "yes", "maybe")),  # a new text follows the others
    ],
)
def test_a_column_keeps_its_states_and_bins(earlier, states, kept):
    memory = new_memories()["a"]
    for found in (earlier, states):
        data = data_of_one("x", found)
        memory.keep_values(memory.snapshot(data, "x", memory.digests(data)), [data.variables["x"]])
    assert memory.states == {"x": kept}


def data_of_one(name, states):
    """Return a site's data of one variable, with a record of each state."""
    codes = np.arange(len(states), dtype=np.uint8)
    people = TextColumn.of(f"person {k}" for k in range(len(states)))
    return SiteData({name: Variable(name, states)}, {name: codes}, people)


def test_a_column_that_says_the_same_hides_no_correction(data_folder):
    """Adult: education before a correction, and education-num after it."""
    frame = table_of(data_folder, "adult")
    memories = new_memories()
    released(frame, memories, "education", EXACT, columns=["age", "race", "sex"])
    after = frame.copy()
    after.loc[after.index[7], ["education", "education-num"]] = ["Doctorate", "16"]
    with pytest.raises(QueryRefusedError, match=r"noise of both|records have changed"):
        released(after, memories, "education-num", EXACT, columns=["age", "race", "sex"])


def test_control_with_nothing_compared_that_column_shows_the_row(data_folder):
    frame = table_of(data_folder, "adult")
    memories, columns = new_memories(), ["age", "race", "sex"]
    options = {"policy": DOES_NOT_MIND, "columns": columns}
    before = released(frame, memories, "education", EXACT, **options)
    after = frame.copy()
    after.loc[after.index[7], ["education", "education-num"]] = ["Doctorate", "16"]
    tables = released(after, memories, "education-num", EXACT, **options)
    data = {n: c for site in sites_of(frame, memories).values() for n, c in site.codes.items()}
    same = dict(zip(data["education"], data["education-num"], strict=True))
    old = data["education"][7]
    falls = {v: tables[v][:, same[old]] - before[v][:, old] for v in columns}
    assert {v: int(fall.argmin()) for v, fall in falls.items()} == {v: data[v][7] for v in columns}
    assert all(np.abs(fall).sum() == 1 for fall in falls.values())


def test_an_approval_of_data_is_beside_the_studies_that_the_owner_read_of(data_folder):
    """Another study, approved and run in between, is not among them."""
    frame, name = table_of(data_folder, "pima"), TABLES["pima"][2]
    memories = new_memories()
    first = frame.iloc[:-100]
    before = released(first, memories, name, EXACT)
    data = sites_of(frame, memories)
    read = {s: memories[s].beside_earlier(data[s], EXACT.name, 10).data for s in data}
    after, _ = corrected(frame, name, before[next(iter(before))].shape[1])
    released(after, memories, name, EXACT, approved=True)
    with pytest.raises(QueryRefusedError, match=r"noise of both|records have changed"):
        released(frame, memories, name, EXACT, approved=read)
    released(frame, memories, name, EXACT, approved=True)


def test_few_corrections_before_winners_are_answered_if_the_owner_approves_them(data_folder):
    frame, name = table_of(data_folder, "pima"), TABLES["pima"][2]
    memories, after = new_memories(), frame.copy()
    after.loc[after.index[:3], name] = frame[name].iloc[-1]
    chosen(frame, memories, name)
    with pytest.raises(QueryRefusedError, match="fewer than 10 records have changed"):
        chosen(after, memories, name)
    chosen(after, memories, name, approved=True)


def chosen(frame, memories, name, *, approved=False):
    """Choose whether a column has a parent, and release noisy tables, in an approved study."""
    data = sites_of(frame, memories)
    other = next(v for v in data["a"].variables if v != name)
    choice = Choices((((Score(Family(other, (name,))),), (Score(Family(other)),)),))
    noisy = FamilyTables((Family(other),), False, NOISY)

    def steps(_):
        yield choice
        yield noisy

    options = {"memories": memories, "rule": NOISY, "seed": b"%d" % next(SEEDS)}
    federation, contract = federation_of(data, steps, **options)
    with federation:
        if approved:
            approve(federation, contract, data, memories, NOISY, approved)
        study = begun(federation, contract)
        study.choose(choice)
        study.release(noisy)


def test_two_rules_that_hide_small_counts_are_not_answered_beside_each_other(data_folder):
    """Multiples of 10 and of 7 show 33 of 326 counts of Adult (docs/results.md, known counts)."""
    other = Rule("rounded", fewest=7)
    frame, name = table_of(data_folder, "pima"), TABLES["pima"][2]
    memories = new_memories()
    for rule in (Rule("rounded"), Rule("rounded"), NOISY):
        released(frame, memories, name, rule)
    with pytest.raises(QueryRefusedError, match="noise of both"):
        released(frame, memories, name, other)
    released(frame, memories, name, other, approved=True)


def test_new_pseudonyms_of_some_people_hide_no_correction(world):
    """If more than half keep their names, as many come as leave, and both are many."""
    frame, name = world
    memories = new_memories()
    before = released(frame, memories, name, EXACT)
    after, gone = corrected(frame, name, before[next(iter(before))].shape[1])
    renamed = [*gone, *(k for k in range(0, len(frame), 3) if k not in gone)]
    people = after["person"].to_list()
    for record in renamed:
        people[record] = f"new {people[record]}"
    after["person"] = people
    with pytest.raises(QueryRefusedError, match=r"noise of both|records have changed"):
        released(after, memories, name, EXACT)
    unchanged = frame.assign(person=people)
    released(unchanged, memories, name, EXACT)  # nothing differs but the names


# ---- newcomers -----------------------------------------------------------------------------------


def small_counts(before, after):
    """Count the cells of the people who came: how many are from 1 to 9."""
    return sum(int(((after[n] - t > 0) & (after[n] - t < 10)).sum()) for n, t in before.items())


@pytest.mark.parametrize("rule", [EXACT, CUT], ids=["exact", "cut"])
@pytest.mark.parametrize("newcomers", [10, 370])
def test_counts_of_newcomers_are_shown_by_nobody(world, rule, newcomers):
    """Of many newcomers, too, one may be alone in a cell."""
    frame, name = world
    memories = new_memories()
    released(frame.iloc[:-newcomers], memories, name, rule)
    with pytest.raises(QueryRefusedError, match="noise of both"):
        released(frame, memories, name, rule)


@pytest.mark.parametrize("rule", [EXACT, CUT], ids=["exact", "cut"])
def test_control_without_the_comparison_newcomers_have_small_counts(world, rule):
    frame, name = world
    memories = new_memories()
    before = released(frame.iloc[:-10], memories, name, rule, policy=DOES_NOT_MIND)
    after = released(frame, memories, name, rule, policy=DOES_NOT_MIND)
    assert small_counts(before, after) >= (30 if rule == EXACT else 1)


def test_noise_needs_no_comparison(world):
    frame, name = world
    memories = new_memories()
    released(frame.iloc[:-10], memories, name, NOISY)
    after, _ = corrected(frame, name, 12)
    released(after, memories, name, NOISY)


# ---- five years ----------------------------------------------------------------------------------

MONTHS, FIRST = 60, 2000


def extracts(frame, name, seed=5):
    """Yield a site's monthly extracts: each has 40 people more, and three corrected values."""
    rng, grown = np.random.default_rng(seed), frame.copy()
    for month in range(MONTHS):
        records = FIRST + 40 * month
        for place in rng.integers(0, records, 3):
            grown.loc[grown.index[place], name] = grown[name].iloc[rng.integers(0, records)]
        yield month, grown.iloc[:records].copy()


def test_five_years_of_monthly_extracts(data_folder):
    """Counts leave once, and again as the owner approves; with noise the study comes each year."""
    name, state = TABLES["bank"][2:]
    frame = table_of(data_folder, "bank")[["person", name, state, "y"]]
    outcomes: dict[str, Counter[str]] = {}
    for how, rule in (("cut", CUT), ("approved", ROUNDED), ("noise", NOISY)):
        memories, said = new_memories(), outcomes.setdefault(how, Counter())
        for month, extract in extracts(frame, name):
            if how != "cut" and month % 12:  # the consortium asks once a year
                continue
            try:
                released(extract, memories, name, rule, approved=how == "approved" and month > 0)
                said["released"] += 1
            except QueryRefusedError:
                said["refused"] += 1
    assert outcomes == {
        "cut": {"released": 1, "refused": 59}, "approved": {"released": 5}, "noise": {"released": 5}
    }  # fmt: skip
