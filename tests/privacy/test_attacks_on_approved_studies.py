"""The attacks of `test_attacks_on_free_tables` on sites that answer approved studies alone.

What a site agreed to is answered and nothing else. What was agreed to can still say too much: the
tests name which rule of release stops which attack, and which does not.
"""

from __future__ import annotations

from contextlib import nullcontext as nothing
from dataclasses import replace

import numpy as np
import pytest

from tests.privacy.test_a_lie_that_ends_runs import data as two_values
from tests.privacy.test_a_lie_that_ends_runs import lying
from tests.privacy.test_attacks_on_free_tables import (
    ILLNESS,
    RECORDS,
    corrected,
    digits_and_victim,
    named_columns,
    new_memories,
    read_by_place,
)
from tests.protocols.small import packets
from tests.randomness import SeededRandomness
from vertibayes.counting.released import ReleasedCounter
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.choices import Choices, Constant, Score
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Begin, Choose
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family, Rows, Variable

MEMORY = 1 << 26
POLICY = Policy()  # of sites that answer approved studies alone
EXACT, CUT = Rule("exact"), Rule("cut", fewest=10)


def federation_of(
    data, learner, seed=b"one", policy=POLICY, runs=1, rule=None, variables=(), **options
):
    """Start sites whose owners have approved one study; return them and its contract."""
    federation = federate(data, policy=policy, randomness=SeededRandomness(seed), **options)
    keys, role = federation.session.role.public_keys, federation.session.role
    contract = Contract(
        sites=tuple((site, keys[site]) for site in federation.sites),
        dealer=(DEALER, keys[DEALER]),
        analyst=(ANALYST, role.keys.public),
        variables=variables or tuple(name for site in data.values() for name in site.variables),
        learner="a test",
        options={},
        rule=rule,
        memory=MEMORY,
        runs=runs,
    )
    approved = {contract.digest: Approved(contract, "A. Owner", "2026-01-31", learner)}
    for site in federation.roles.values():
        site.approvals = approved.get
    return federation, contract


def begun(federation, contract):
    """Begin a run of an approved study."""
    federation.session.ask(Begin.of(contract))
    sites, names = contract.site_names, contract.variables
    options = {"order": names, "memory": MEMORY, "choices": True}
    return open_study(federation.session, sites, DEALER, **options)


def releasing(rule, *families):
    """Return a learner that releases the tables of some families, whatever the data are."""

    def steps(_):
        yield FamilyTables(families, False, rule)

    return steps


def released(data, rule, *families, **options):
    """Return the tables of some families, by a rule, of an approved study."""
    federation, contract = federation_of(data, releasing(rule, *families), **options)
    with federation:
        return begun(federation, contract).release(FamilyTables(families, False, rule))


def tables_revealed(federation):
    return sum(len(role.ledger.tables) for role in federation.roles.values())


# ---- crafted queries -----------------------------------------------------------------------------


def test_slices_and_wide_tables_are_refused():
    federation, contract = federation_of(named_columns(), releasing(CUT, Family("v00")))
    study = begun(federation, contract)
    wide = Family("v00", tuple(f"v{k:02}" for k in range(1, 8)))
    for rows in (Rows(), Rows(0, 0, 10)):
        query, _ = ask_tables(study.joined, [wide], False, rows)
        with pytest.raises(QueryRefusedError, match="is not the next step of the study"):
            federation.session.ask(query)
    assert tables_revealed(federation) == 0


def test_the_table_of_the_digits_and_a_crafted_choice_are_refused():
    federation, contract = federation_of(digits_and_victim(), releasing(CUT, Family("illness")))
    study = begun(federation, contract)
    crafted = Choices((((), (Score(ILLNESS), Score(Family("illness"), (), -1))),))
    for query in (
        ask_tables(study.joined, [ILLNESS], False, Rows())[0],
        Choose.of(study.joined, crafted),
    ):
        with pytest.raises(QueryRefusedError, match="is not the next step of the study"):
            federation.session.ask(query)
    assert tables_revealed(federation) == 0


def test_another_constant_or_score_than_the_contract_gives_is_refused():
    """Otherwise the analyst would read the score between constants, a bit for each."""

    def penalized(millionths, score="likelihood"):
        alone = Score(Family("illness"))
        return Choices((((Score(ILLNESS), Constant(millionths)), (alone,)),), score=score)

    def steps(_):
        yield penalized(-1_500_000)

    federation, contract = federation_of(digits_and_victim(), steps)
    study = begun(federation, contract)
    for crafted in (penalized(-1_500_001), penalized(0), penalized(-1_500_000, "k2")):
        with pytest.raises(QueryRefusedError, match="is not the next step of the study"):
            study.choose(crafted)
    assert study.choose(penalized(-1_500_000)) in {(0,), (1,)}


# ---- a site whose columns are digits, in a study that all owners approved ------------------------


def share_read(rule, seed=b"one"):
    """Return the share of the victim's values that the table of the digits shows."""
    data = digits_and_victim()
    (table,) = released(data, rule, ILLNESS, seed=seed, policy=Policy(most_epsilon=100.0))
    guess = table.reshape(len(table), -1)[:, :RECORDS].argmax(axis=0)
    return float((guess == data["victim"].codes["illness"]).mean())


def test_an_exact_release_of_the_digits_table_reads_the_column():
    """What an owner approves is what leaves: an exact release stops nothing."""
    data = digits_and_victim()
    (table,) = released(data, EXACT, ILLNESS)
    assert read_by_place(table).tolist() == data["victim"].codes["illness"].tolist()


def test_an_exact_release_of_a_column_with_a_state_for_each_person_reads_the_column():
    """A column as wide as this is shuffled: all tables of the release are."""
    data = digits_and_victim()
    place = Variable("place", tuple(f"person {k}" for k in range(RECORDS)))
    codes = {"place": np.arange(RECORDS, dtype=np.uint8)}
    data["accomplice"] = replace(data["accomplice"], variables={"place": place}, codes=codes)
    (table,) = released(data, EXACT, Family("illness", ("place",)))
    assert read_by_place(table).tolist() == data["victim"].codes["illness"].tolist()


def test_a_cut_releases_nothing_of_the_digits_table():
    """Each of its cells is 0 or 1."""
    (table,) = released(digits_and_victim(), CUT, ILLNESS)
    assert not table.any()


def test_noise_bounds_what_the_digits_table_tells():
    """At eps = 1 the best guess among three values is right for 0.60; no noise of eps allows 0.79.

    Another value is one record less and one more, and so two steps: e^2 / (e^2 + 2) = 0.79.
    """
    assert share_read(Rule("laplace", epsilon=1.0)) < 0.71  # 3 standard deviations more
    assert share_read(Rule("laplace", epsilon=20.0)) > 0.95  # control: little noise stops little


def test_a_cut_does_not_hide_that_a_group_has_one_value():
    """If the list of people is sorted by the value, each ten people of the list have one value."""
    data = digits_and_victim()
    ordered = np.sort(data["victim"].codes["illness"])
    data["victim"] = replace(data["victim"], codes={"illness": ordered})
    (table,) = released(data, CUT, Family("illness", ("tens",)))
    read = table.max(axis=0)  # people of each group of fifteen whose value is released
    assert read.sum() > 0.8 * RECORDS


# ---- a correction between two studies ------------------------------------------------------------


FAMILIES = tuple(Family(f"v{k:02}", ("v00",)) for k in range(1, 12))


def differences(rule, fewest):
    """Return the differences of the released tables before and after one correction."""
    data, memories = named_columns(), new_memories()
    before, after = (
        released(d, rule, *FAMILIES, seed=seed, memories=memories,
                 policy=Policy(fewest_records=fewest, most_epsilon=100.0))
        for d, seed in ((data, b"one"), (corrected(data, 17), b"another"))
    )  # fmt: skip
    return [b - a for a, b in zip(before, after, strict=True)], corrected(data, 17)


@pytest.mark.parametrize("rule", [EXACT, CUT], ids=["exact", "cut"])
def test_counts_after_one_correction_are_refused_and_noise_needs_no_check(rule):
    with pytest.raises(QueryRefusedError, match="a refuses: fewer than 10 records have changed"):
        differences(rule, fewest=10)
    changes, _ = differences(Rule("laplace", epsilon=1.0), fewest=10)
    assert max(np.abs(change).max() for change in changes) > 1


def test_choices_after_one_correction_are_refused_also_before_noise():
    """Winners have no noise."""
    data, memories = named_columns(), new_memories()
    choice = Choices((((Score(Family("v01", ("v00",))),), (Score(Family("v01")),)),))
    noisy = FamilyTables((Family("v01"),), False, Rule("laplace", epsilon=0.5))

    def steps(_):
        yield choice
        yield noisy

    for seed, sites in ((b"one", data), (b"another", corrected(data, 17))):
        federation, contract = federation_of(sites, steps, seed=seed, memories=memories)
        with federation:
            study = begun(federation, contract)
            if seed == b"another":
                with pytest.raises(QueryRefusedError, match="fewer than 10 records have changed"):
                    study.choose(choice)
            else:
                study.choose(choice)
                study.release(noisy)


@pytest.mark.parametrize(("rule", "least"), [(EXACT, 11), (CUT, 3)], ids=["exact", "cut"])
def test_without_that_check_an_exact_release_and_a_cut_show_the_correction(rule, least):
    """A cut hides small cells, and not that a large one has grown by one."""
    changes, after = differences(rule, fewest=1)
    codes = {name: column for site in after.values() for name, column in site.codes.items()}
    read = {
        family.child: int(np.argwhere(change == 1)[0, 0])
        for family, change in zip(FAMILIES, changes, strict=True)
        if (change == 1).any()
    }
    assert read == {name: int(codes[name][17]) for name in read}
    assert len(read) >= least


def test_fresh_noise_hides_the_correction():
    changes, _ = differences(Rule("laplace", epsilon=1.0), fewest=1)
    assert all(np.abs(change).max() > 2 for change in changes)


# ---- how much all studies release ----------------------------------------------------------------


def test_the_tables_and_cells_of_all_studies_are_limited():
    data, memories = named_columns(), new_memories()
    allowed = {"memories": memories, "policy": Policy(most_released_tables=15)}
    assert len(released(data, CUT, *FAMILIES, **allowed)) == 11
    with pytest.raises(QueryRefusedError, match="22 tables: its policy allows most_released_table"):
        released(data, CUT, *FAMILIES, seed=b"another", **allowed)
    allowed["policy"] = Policy(most_released_cells=11 * 16 + 2 * 16)
    with pytest.raises(QueryRefusedError, match="224 cells: its policy allows most_released_cells"):
        released(data, CUT, *FAMILIES[:3], seed=b"a third", **allowed)
    assert len(released(data, CUT, *FAMILIES[:2], seed=b"a fourth", **allowed)) == 2


# ---- a site that lies ----------------------------------------------------------------------------


def choosing(study):
    """Choose whether x is a parent of z; release the table of x."""
    del study
    yield ARC
    yield FamilyTables((Family("x"),), False, CUT)


ARC = Choices((((), (Score(Family("z", ("x",))), Score(Family("z"), (), -1))),))
FEW = 5


def test_a_lying_site_reads_a_bit_of_each_choice_and_failed_runs_are_limited(monkeypatch):
    """It changes what it committed, sees the winner, and ends the run before the release."""
    read, lies = [], {"at": 0}
    change = lambda sent, packet: lying([0], lies["at"], 8)(sent, packet)  # noqa: E731
    with packets(monkeypatch, change):
        federation, contract = federation_of(
            two_values(), choosing, policy=Policy(most_failed_runs=FEW)
        )
        for lies["at"] in range(FEW):
            read.append(begun(federation, contract).choose(ARC)[0])
            for role in federation.roles.values():
                role.leave()
        with pytest.raises(QueryRefusedError, match=f"{FEW} runs of the study began and releas"):
            begun(federation, contract)
    assert read == (two_values()["a"].codes["x"][:FEW] == 1).tolist()


@pytest.mark.parametrize("rule", [EXACT, CUT], ids=["exact", "cut"])
def test_a_release_does_not_end_by_what_a_lying_site_changed(monkeypatch, rule):
    """The lies of `test_a_lie_that_ends_runs`: no check depends on them, so b reads no bit.

    The analyst pays for it: the tables are wrong. It sees that after the run, in which nothing
    follows the release, when it counts their records.
    """
    arc, true, wrong = Family("z", ("x",)), two_values(), []
    request = FamilyTables((arc,), False, rule)
    variables = {name: v for site in true.values() for name, v in site.variables.items()}
    values = true["a"].codes["x"][:4].tolist()
    for record in range(4):
        with packets(monkeypatch, lying([0], record)):
            tables = released(true, rule, arc)
        with pytest.raises(ValueError, match="more than all 60") if values[record] else nothing():
            ReleasedCounter(variables, 60, request, tables)
        wrong.append(int(tables[0].sum()) != 60)
    assert wrong == [value == 1 for value in values]
