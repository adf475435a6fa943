"""HDPNB: the model of all records in one place, whoever comes, goes or drops out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB

from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from tests.vertibayes.hdpnb_worlds import (
    SCHEMA,
    WAYS,
    drop_after,
    federation_of,
    join_all,
    parties,
    pooled,
    records,
    states,
    study,
    watch,
)
from vertibayes.naive_bayes.releases import learn_sums
from vertibayes_mpc.additive_scheme import Parameters
from vertibayes_mpc.errors import PartyGoneError, ProtocolError
from vertibayes_mpc.membership import Roll
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.engine import answer, consider
from vertibayes_protocols.federation import ANALYST
from vertibayes_protocols.queries import Sums
from vertibayes_protocols.queries.sums import aggregations
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms, count_query
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Parameters, "least_bits", 0)


both_ways = pytest.mark.parametrize("via", WAYS)


@both_ways
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_without_noise_it_is_scikit_learns(via, data):
    sizes = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=4))
    classes, n = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 6))
    features = {f"x{i}": Variable(f"x{i}", states(k)) for i, k in enumerate(sizes)}
    schema = Schema(Variable("y", states(classes)), features)
    held = {f"p{i}": records(data.draw(st.integers(0, 9)), i, schema) for i in range(n - 1)}
    held["last"] = records(30, 99, schema)
    held["last"].codes["y"][:classes] = np.arange(classes)  # scikit-learn knows no absent class
    model = study(held, via, schema=schema).round()
    everything = join_all(held.values())
    x = np.array([everything.codes[name] for name in schema.categorical]).T
    theirs = CategoricalNB(min_categories=sizes).fit(x, everything.codes["y"])
    assert model.class_log_prior_ == pytest.approx(theirs.class_log_prior_, abs=1e-12)
    for name, wanted in zip(schema.categorical, theirs.feature_log_prob_, strict=True):
        assert model.feature_log_prob_[name] == pytest.approx(wanted, abs=1e-12)
    assert model.predict_log_proba(everything) == pytest.approx(
        theirs.predict_log_proba(x), abs=1e-12
    )
    assert model.class_count_.tolist() == theirs.class_count_.tolist()


@pytest.mark.laws
@both_ways
def test_a_hundred_rounds_of_joins_leaves_and_absences(via):
    generator = np.random.default_rng(7)
    held = parties(7)
    world, joined, left, missed = study(held, via, dropouts=0.3), 0, 0, 0
    for step in range(100):
        if generator.random() < 0.5 and len(held) < 12:
            name = f"n{step}"
            held[name] = records(int(generator.integers(0, 6)), step)
            assert name in world.join(name, held[name])
            joined += 1
        elif len(held) > 3:
            name = sorted(held)[int(generator.integers(len(held)))]
            assert name not in world.leave(name)
            del held[name]
            left += 1
        missing = int(generator.integers(0, world.terms.absent(len(held)) + 1))
        missed += missing
        absent = generator.permutation(sorted(held))[:missing].tolist()
        there = [found for party, found in held.items() if party not in absent]
        model = world.round(absent=absent)
        assert np.array_equal(model.sums_, pooled(world.terms, there).sums_), step
        assert world.release_.parties == tuple(sorted(set(held) - set(absent)))
        assert world.parties == tuple(sorted(held))
        n, u = len(held), world.members.estimates
        assert set(u) == set(held) and all(n / 2 < each <= n for each in u.values())
    assert joined > 30 and left > 30 and missed > 30


@both_ways
def test_ten_batches_are_all_at_once(via):
    tenths = np.array_split(np.arange(30), 10)
    held = {f"p{i:02}": [records(30, i).rows(rows) for rows in tenths] for i in range(4)}
    world = study({party: found[0] for party, found in held.items()}, via)
    world.increment()
    for batch in range(1, 10):
        for party, found in held.items():
            if party != "p00" or batch % 2:
                world.add(party, found[batch])
        world.increment()
    for batch in (2, 4, 6, 8):
        world.add("p00", held["p00"][batch])
    model = world.increment()
    whole = pooled(world.terms, [data for found in held.values() for data in found])
    assert np.array_equal(model.sums_, whole.sums_)
    assert np.array_equal(model.predict_proba(records(20)), whole.predict_proba(records(20)))
    assert np.array_equal(world.increment().sums_, whole.sums_), "nothing twice"
    assert np.array_equal(world.round().sums_, whole.sums_)


@both_ways
def test_increments_take_in_newcomers_and_who_was_absent(via):
    held = parties(5)
    world = study(held, via, dropouts=0.2)
    world.round(absent=["p01"])
    world.leave("p02")
    world.join("new", records(4, 50))
    model = world.increment()
    assert np.array_equal(model.sums_, pooled(world.terms, [*held.values(), records(4, 50)]).sums_)
    there = [found for party, found in held.items() if party != "p02"]
    wanted = pooled(world.terms, [*there, records(4, 50)]).sums_
    assert np.array_equal(world.round().sums_, wanted), "who left is out of the next round"


@both_ways
def test_increments_take_in_who_missed_the_last_round(via):
    held = parties(5)
    world = study(held, via, dropouts=0.2)
    world.round()
    without = [found for party, found in held.items() if party != "p01"]
    model = world.round(absent=["p01"])
    assert np.array_equal(model.sums_, pooled(world.terms, without).sums_)
    everything = pooled(world.terms, list(held.values()))
    assert np.array_equal(world.increment().sums_, everything.sums_)


def test_batches_add_to_sums_that_were_not_clamped():
    world = study(parties(4), "masked", Privacy(eps=2.0), randomness=SeededRandomness(b"c"))
    first = world.round().sums_
    assert (first < 0).any()
    world.add("p01", records(4, 9))
    assert np.array_equal(world.increment().sums_, first + world.release_.sums)


def test_earlier_models_stay_as_they_were():
    held = parties(3)
    world = study(held, "masked")
    first = world.round()
    before = first.sums_.copy(), first.predict_proba(records(5))
    world.add("p00", records(9, 77))
    assert world.increment() is not first
    assert np.array_equal(first.sums_, before[0])
    assert np.array_equal(first.predict_proba(records(5)), before[1])


def test_drop_outs_between_any_rounds_of_masked_sums():
    held = parties(6)
    for last in range(7):
        world = study(held, "masked", dropouts=0.34)
        drop_after(world.federation, {"p03": last})
        world.round()
        vector_sent = last >= 4  # its answer, keys, shares and masked vector
        there = [found for party, found in held.items() if party != "p03" or vector_sent]
        assert np.array_equal(world.model_.sums_, pooled(world.terms, there).sums_), last
        assert ("p03" in world.release_.parties) == vector_sent


def test_the_promise_is_of_the_noise_of_those_who_are_left():
    """The control is the promise of the query, of all who are asked."""
    world = study(parties(6), "masked", Privacy(eps=50.0, gamma=0.5), dropouts=0.34)
    drop_after(world.federation, {"p03": 3})
    world.round()
    asked = Sums.of(world.federation.analyst, world.terms, world.members)
    all_six = asked.summation().promise
    absent = Sums.of(world.federation.analyst, world.terms, world.members, ["p03"])
    five = absent.summation().promise
    assert (all_six.present, five.present) == (6, 5) and five.sd < all_six.sd
    assert (world.promise_.present, world.promise_.sd) == (5, five.sd)
    assert world.promise_.copies == five.copies and world.promise_.cost == all_six.cost


@pytest.mark.parametrize("when", ["before it answers", "before the roll"])
def test_who_fails_ends_the_round_of_the_additive_scheme_and_the_next_does_without(when):
    held = parties(5)
    world = study(held, "additive", Privacy(eps=50.0, gamma=0.8), dropouts=0.2)
    drop_after(world.federation, {"p02": 0 if when == "before it answers" else 1})
    with pytest.raises(PartyGoneError, match="p02"):
        world.round()
    assert not hasattr(world, "model_")
    del world.federation.session
    world.round(absent=["p02"])
    assert world.release_.parties == ("p00", "p01", "p03", "p04")
    assert world.spent.releases == 2, "what was sent counts as released"


def test_too_few_survivors_and_the_promise_does_not_hold():
    world = study(parties(6), "masked", Privacy(eps=50.0, gamma=0.8), dropouts=0.2)
    drop_after(world.federation, {"p01": 3, "p03": 3})
    with pytest.raises(PartyGoneError, match="p01, p03"):
        world.round()


def test_a_sum_that_opens_without_the_noise_agreed_is_not_learned_from(monkeypatch):
    monkeypatch.setattr(aggregations, "ALL_TO_ALL", 0)
    privacy = Privacy(eps=90.0, gamma=0.8)
    world = study(parties(10), "masked", privacy, dropouts=0.1, dishonest=0.1)
    drop_after(world.federation, {"p01": 3, "p03": 3})
    with pytest.raises(PartyGoneError, match="p01, p03: gone: the noise of the others does not"):
        world.round()
    assert not hasattr(world, "model_") and world.spent.releases == 1


def test_a_party_refuses_a_roll_that_calls_away_the_noise():
    world = study(parties(9), "additive", Privacy(eps=50.0, gamma=0.8), dropouts=0.2)
    for called, refused in ((1, False), (2, True)):  # a third of the block would be three
        query = Sums.of(world.federation.analyst, world.terms, world.members)
        site = world.federation.roles["p00"]
        program = answer(site, consider(site, query))
        next(program)
        label = aggregations.parameters_of(query.summation(), SMALL).label
        roll = Roll(label, query.number, tuple(f"p0{i}" for i in range(1, 1 + called)))
        if refused:
            with pytest.raises(
                ProtocolError, match="calls 2 absent, at most 1 are agreed"
            ) as error:
                program.send({ANALYST: roll})
            assert error.value.party == ANALYST
        else:
            assert program.send({ANALYST: roll}).outbox


@both_ways
def test_a_party_without_records_sends_what_others_send(via):
    held = parties(4) | {"p99": records(0)}
    world, kinds = study(held, via), {}

    def note(transport, sent):
        kinds.setdefault(sent.sender, []).append(type(sent.message))

    watch(world.federation, note)
    assert np.array_equal(world.round().sums_, pooled(world.terms, list(held.values())).sums_)
    del kinds[ANALYST]
    assert len({tuple(each) for each in kinds.values()}) == 1 and len(kinds) == 5
    sent = {world.federation.traffic.bytes_sent[party, ANALYST] for party in held}
    assert len(sent) == 1, "nor do they send more bytes"
    assert count_query("p99", world.terms, [records(0)]).tolist() == [0] * 21
    assert count_query("p99", world.terms, []).tolist() == [0] * 21


@both_ways
def test_numbers_without_noise(via):
    schema = Schema(Variable("y", states(2)), {"z": Numeric("z", 0, 10)})
    generator = np.random.default_rng(5)

    def part(n):
        y = generator.integers(0, 2, n)
        z = {"z": generator.uniform(0, 10, n)}
        return LocalData({"y": schema.target}, {"y": y}, {"z": schema.features["z"]}, z)

    held = {f"p{i}": part(8) for i in range(3)}
    model = study(held, via, schema=schema).round()
    assert np.array_equal(model.sums_, pooled(Terms(schema, 3, 8), list(held.values())).sums_)
    with pytest.raises(ValueError, match="z: noise needs centred moments"):
        Terms(schema, 3, 8, Privacy(eps=1.0)).check()


@both_ways
@pytest.mark.parametrize("absent", [(), ("p01",)])
def test_an_analyst_asks_one_release_of_any_session(via, absent):
    held, terms = parties(4), Terms(SCHEMA, 5, 5, dropouts=0.25)
    federation = federation_of(held)
    members = Members(terms, held, via)
    there = [data for party, data in held.items() if party not in absent]
    with federation.session(absent) as session:
        release = learn_sums(session, terms, members, absent)
        more = learn_sums(session, terms, members, absent, before=release.sums, alpha=2.0)
    assert np.array_equal(release.model.sums_, pooled(terms, there).sums_)
    assert release.parties == tuple(sorted(set(held) - set(absent))) and release.promise is None
    assert np.array_equal(more.model.sums_, 2 * release.sums) and more.model.alpha == 2.0
    # A query, its answer, a verdict; the roll goes with it, or five messages of each and four back.
    assert federation.traffic.rounds == {"additive": 4 + 4, "masked": 12 + 12}[via]


@both_ways
def test_values_that_are_missing_are_counted_in_no_table_that_has_them(via):
    held = parties(3)
    held["p01"].codes["a"][:] = 4
    model = study(held, via).round()
    assert np.array_equal(model.sums_, pooled(Terms(SCHEMA, 3, 8), list(held.values())).sums_)
