"""Sites that hold some of a study's records: what they commit, count, refuse and remember."""

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import count, memories, refusal
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import study_of as opened_study
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Commit, Describe, Meet, Publish
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.queries.tables.counting import grouped
from vertibayes_protocols.queries.tables.masked_costs import MaskedCosts, choose_shuffled
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.study_people import Placement
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Family, Rows, Variable

STATES = ("no", "yes", "maybe")
RECORDS = 40


def site_data(names, records, seed=0, ids=None):
    generator = np.random.default_rng(seed)
    codes = {name: generator.integers(0, 3, records).astype(np.uint8) for name in names}
    return SiteData({name: Variable(name, STATES) for name in names}, codes, ids)


def halves(at, records=RECORDS):
    """Two hospitals with rows of x, cut at a place, and a registry with z of everybody."""
    everyone = np.arange(records)
    data = {
        "a": site_data("xy", at, 1),
        "b": site_data("xy", records - at, 2),
        "c": site_data("z", records, 3),
    }
    return data, {
        "a": Placement(records, everyone[:at]),
        "b": Placement(records, everyone[at:]),
    }


def described(federation):
    federation.session.ask(Meet.of(federation.session.role, federation.sites, federation.dealer))
    return federation.session.ask(Describe(federation.sites))


def study_of(federation, aligned=True, name=b"one study"):
    sizes = 16, 1 << 27
    shown = described(federation)
    return opened_study(name, shown, federation.dealer, None, *sizes, aligned=aligned)


def started(data, placements, **options):
    return federate(data, placements=placements, randomness=SeededRandomness(), **options)


def committed(data, placements, **options):
    federation = started(data, placements, **options)
    study = study_of(federation)
    federation.session.ask(Commit.of(study))
    return federation, study


def free(**limits):
    return Policy(free_tables=True, **limits)


def test_rows_of_two_sites_are_counted_together():
    data, placements = halves(15)
    federation, study = committed(data, placements, policy=free(fewest_records=1))
    assert study.holders == {"x": ("a", "b"), "y": ("a", "b"), "z": ("c",)}
    assert study.variables["x"].missing and not study.variables["z"].missing
    (table,) = count(federation, study, ("x", "y"))
    joint = [np.concatenate([data[s].codes[name] for s in "ab"]) for name in "xy"]
    expected = np.zeros((3, 3), np.int64)
    np.add.at(expected, tuple(joint), 1)
    assert np.array_equal(table, expected)


def test_two_sites_with_one_column_need_an_alignment():
    data, placements = halves(15)
    with pytest.raises(ValueError, match=r"at two sites, a and b; rename one, or declare \[align"):
        study_of(started(data, placements), aligned=False)


def test_a_site_without_a_placement_shares_no_column():
    """An analyst that says it has aligned the lists does not change that."""
    data = {"a": site_data("xy", RECORDS, 1), "b": site_data("xz", RECORDS, 2)}
    federation = started(data, {})
    reason = refusal(federation, Commit.of(study_of(federation)))
    assert "'x' lies at a, b, and the study does not align" in reason


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        (("no", "yes"), "only a has 'maybe'; declare the same states"),
        (("no", "yes", "never"), "only a has 'maybe'; only b has 'never'"),
        (("yes", "no", "maybe"), "a has ['no', 'yes', 'maybe'], b has ['yes', 'no', 'maybe']"),
    ],
)
def test_states_that_differ_are_named_with_their_sites(states, reason):
    data, placements = halves(15)
    codes = {name: np.zeros(25, np.uint8) for name in "xy"}
    other = {"x": Variable("x", states), "y": Variable("y", STATES)}
    with pytest.raises(ValueError, match="column 'x' with different states") as caught:
        study_of(started({**data, "b": SiteData(other, codes)}, placements))
    assert reason in str(caught.value)


def test_a_site_that_holds_some_records_shows_that_values_may_be_missing():
    data, placements = halves(15)
    shown = described(started(data, placements))
    assert {site: d.records for site, d in shown.items()} == dict.fromkeys("abc", RECORDS)
    missing = {site: {m for _, _, m in d.variables} for site, d in shown.items()}
    assert missing == {"a": {True}, "b": {True}, "c": {False}}


def test_a_column_of_one_site_misses_the_people_whom_it_does_not_hold():
    records, places = 12, np.array([3, -1, 0, 7, 5, 9, 11, 1])
    data = {"a": site_data("x", 8, 1), "c": site_data("z", records, 2)}
    placements = {"a": Placement(records, places)}
    federation, study = committed(data, placements, policy=free(fewest_records=1))
    (table,) = count(federation, study, ("x", "z"), missing=True)
    column = np.full(records, 3)
    column[places[places >= 0]] = data["a"].codes["x"][places >= 0]
    expected = np.zeros((4, 3), np.int64)
    np.add.at(expected, (column, data["c"].codes["z"]), 1)
    assert np.array_equal(table, expected)


def test_the_missing_code_of_a_wide_column_has_room():
    wide = Variable("w", tuple(map(str, range(256))))
    data = {
        "a": SiteData({"w": wide}, {"w": np.array([255, 0], np.uint8)}),
        "c": site_data("z", 3),
    }
    placements = {"a": Placement(3, np.array([2, 0]))}
    federation, study = committed(data, placements, policy=free(fewest_records=1))
    (table,) = count(federation, study, ("w",), missing=True)
    assert np.flatnonzero(table).tolist() == [0, 255, 256]


# ---- what a site refuses and remembers -----------------------------------------------------------


def test_a_site_counts_its_own_records_among_the_chosen():
    """Of forty records b holds six."""
    data, placements = halves(34)
    for fewest, refused in ((7, True), (6, False)):
        federation, _ = committed(data, placements, policy=free(fewest_records=fewest))
        if refused:
            with pytest.raises(QueryRefusedError, match=r"b refuses: .* fewer than 7"):
                count(federation, None, ("x",))
        else:
            count(federation, None, ("x",))


def test_chosen_records_that_single_out_a_sites_own_are_refused():
    """Some of all records are many, and of b's own records all except one or two."""
    data, placements = halves(30)
    federation, _ = committed(data, placements, policy=free(fewest_records=4))
    count(federation, None, ("x",))
    role = federation.roles["b"]
    for seed in range(1, 200):
        chosen = role.joined.selection(Rows(seed, 0, 34)).indices
        if 0 < 10 - int((chosen >= 30).sum()) < 4:
            break
    with pytest.raises(QueryRefusedError, match="b refuses: together with the earlier"):
        count(federation, None, ("x",), rows=Rows(seed, 0, 34))


def test_a_site_none_of_whose_people_are_in_the_study_answers():
    data, _ = halves(15)
    nobody = Placement(RECORDS, np.full(25, -1))
    placements = {"a": Placement(RECORDS, np.arange(15)), "b": nobody}
    federation, _ = committed(data, placements, policy=free(fewest_records=5))
    (table,) = count(federation, None, ("x",))
    assert np.array_equal(table, np.bincount(data["a"].codes["x"], minlength=3))
    assert len(federation.roles["b"].memory.changes.snapshots[-1].people) == 0


def test_another_placement_is_not_committed_in_the_same_study():
    data, placements = halves(15)
    remembered = memories("a", "b", "c")
    committed(data, placements, memories=remembered)
    turned = {**placements, "a": Placement(RECORDS, np.arange(15)[::-1].copy())}
    federation = started(data, turned, memories=remembered)
    assert "has changed since it was committed" in refusal(
        federation, Commit.of(study_of(federation))
    )


@pytest.mark.parametrize(("place", "refused"), [(0, True), (14, False)])
def test_only_changed_values_of_people_in_the_study_are_refused(place, refused):
    """Of a's fifteen records the last is not in the study."""
    data, placements = halves(15)
    placements["a"] = Placement(RECORDS, np.append(np.arange(14), -1))
    remembered, policy = memories("a", "b", "c"), free(fewest_records=2)
    ids = TextColumn.of(list("abcdefghijklmno"))
    data["a"] = replace(data["a"], ids=ids)
    federation, _ = committed(data, placements, memories=remembered, policy=policy)
    count(federation, None, ("x",))
    codes = data["a"].codes["x"].copy()
    codes[place] = (codes[place] + 1) % 3
    a = SiteData(data["a"].variables, {**data["a"].codes, "x": codes}, ids)
    federation = started({**data, "a": a}, placements, memories=remembered, policy=policy)
    study = study_of(federation, name=b"another")
    federation.session.ask(Commit.of(study))
    snapshot = federation.roles["a"].values_of(study)
    found = federation.roles["a"].memory.changes.beside(snapshot, 2)[1]
    assert bool(found) == refused


def test_a_row_that_two_sites_hold_is_noticed_in_tables():
    """An alignment refuses it; here there was none that compared the two lists."""
    data, placements = halves(20)
    placements["b"] = placements["a"]
    federation, _ = committed(data, placements, policy=free(fewest_records=1))
    with pytest.raises(ImpossibleTablesError):
        count(federation, None, ("x", "y"))


def test_predictions_over_columns_need_sites_that_hold_the_same_people():
    data, placements = halves(15)
    federation = started(data, placements)
    features = {name: Variable(name, STATES) for name in "yz"}
    split = Split.of(
        Schema(Variable("x", STATES), features), {"a": ["y"], "c": ["z"]}, [20, 10, 10]
    )
    reason = refusal(federation, Publish.of(split, RecordNoise(1.0)))
    assert "its records are some of those of the study" in reason


# ---- costs ---------------------------------------------------------------------------------------


def measured(federation, ask):
    before = federation.traffic.bytes
    ask()
    return federation.traffic.bytes - before


@pytest.mark.parametrize("at", [0, 1000, 2000])
def test_the_bytes_of_a_commitment_are_those_of_all_holders(at):
    data, placements = halves(at, 2000)
    federation = started(data, placements, policy=free(fewest_records=1))
    study = replace(study_of(federation), block_rows=1 << 15)
    sent = measured(federation, lambda: federation.session.ask(Commit.of(study)))
    said = MaskedCosts(study, study.records, missing=False).commitment_bytes
    assert said <= sent <= 1.05 * said + 10_000


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("names", [("x", "y"), ("x", "z"), ("x", "y", "z"), ("z", "x", "y")])
def test_the_bytes_of_tables_of_several_holders_are_about_those_that_costs_say(names, missing):
    """A product may go to fewer sites than all others, as with columns of one holder."""
    data, placements = halves(1000, 2000)
    federation = started(data, placements, policy=free(fewest_records=1))
    study = replace(study_of(federation), block_rows=1 << 15)
    federation.session.ask(Commit.of(study))
    sent = measured(federation, lambda: count(federation, study, names, missing=missing))
    costs = MaskedCosts(study, study.records, missing)
    (group,), (size,) = grouped([Family(names[0], names[1:])]), costs.sizes(names[:-1], names[-1:])
    shuffled = choose_shuffled(costs, group).shuffled[0]
    products = costs.extension(names[:-1]) + costs.products(size)
    said = (costs.shuffle(size) if shuffled else products).bytes
    assert 0.7 * said <= sent <= 1.1 * said + 20_000
