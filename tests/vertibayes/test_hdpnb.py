"""HDPNB: the model of all records in one place, whoever comes, goes or drops out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB

from mpc.additive_scheme import Parameters
from mpc.errors import DealReusedError, PartyGoneError, ProtocolError
from mpc.membership import Roll
from mpc.noise import no_noise
from mpc.scheduler import ByHand, Scheduler, run_all
from protocols.accounting import Privacy
from protocols.queries import aggregations
from protocols.queries.terms import Terms, count_query, take_part
from protocols.site.statistics import LocalData, Numeric
from protocols.variables import Variable
from tests.randomness import SeededRandomness
from tests.sums import Dropping
from tests.vertibayes.hdpnb_worlds import WAYS, join_all, parties, records, states, study
from vertibayes.naive_bayes.base import Schema
from vertibayes.naive_bayes.distributed import pooled


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
        n, u = len(held), world.estimates.values
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
    for last in range(6):
        world = study(held, "masked", dropouts=0.34, carrier=lambda n=last: Dropping({"p03": n}))
        run_in(world)
        world.round()
        there = [found for party, found in held.items() if party != "p03" or last >= 3]
        assert np.array_equal(world.model_.sums_, pooled(world.terms, there).sums_), last
        assert ("p03" in world.release_.parties) == (last >= 3)


def run_in(world):
    """Let the carrier of a study drop parties: it must know the scheduler."""

    def run(programs, absent):
        carrier = world.carrier()
        scheduler = carrier.scheduler = Scheduler(carrier)
        for party, program in programs.items():
            if getattr(carrier, "last", {}).get(party) == 0:
                scheduler.drop(party)
            else:
                scheduler.start(party, program)
        return scheduler.finish(AGGREGATOR)

    world._run = run


def test_who_fails_after_the_roll_ends_the_round_and_the_next_does_without():
    held = parties(5)
    world = study(held, "additive", Privacy(eps=50.0, gamma=0.8), dropouts=0.2)
    usual, world._run = world._run, None

    def fails(programs, absent):
        scheduler = Scheduler(ByHand())
        for party, program in programs.items():
            scheduler.start(party, program)
        scheduler.drop("p02")
        return scheduler.finish(AGGREGATOR)

    world._run = fails
    with pytest.raises(PartyGoneError, match="p02"):
        world.round()
    assert not hasattr(world, "model_")
    world._run = usual
    world.round(absent=["p02"])
    assert world.release_.parties == ("p00", "p01", "p03", "p04")
    assert world.spent.releases == 2, "what was sent counts as released"


def test_too_few_survivors_and_the_promise_does_not_hold():
    held = parties(6)
    privacy = Privacy(eps=50.0, gamma=0.8)
    world = study(held, "masked", privacy, dropouts=0.2)
    dropping = {"p01": 2, "p03": 2}
    world.carrier = lambda: Dropping(dropping)
    run_in(world)
    with pytest.raises(PartyGoneError, match="p01, p03"):
        world.round()


def test_a_sum_that_opens_without_the_noise_agreed_is_not_learned_from(monkeypatch):
    monkeypatch.setattr(aggregations, "ALL_TO_ALL", 0)
    world = study(parties(10), "masked", Privacy(eps=90.0, gamma=0.8), dropouts=0.1,
                  dishonest=0.1, carrier=lambda: Dropping({"p01": 2, "p03": 2}))  # fmt: skip
    run_in(world)
    with pytest.raises(PartyGoneError, match="p01, p03: gone: the noise of the others does not"):
        world.round()
    assert not hasattr(world, "model_") and world.spent.releases == 1


def test_a_party_refuses_a_roll_that_calls_away_the_noise():
    held = parties(9)
    world = study(held, "additive", Privacy(eps=50.0, gamma=0.8), dropouts=0.2)
    for called, refused in ((1, False), (2, True)):  # a third of the block would be three
        opening = world.aggregation.release([])
        program = take_part("p00", world.terms, [held["p00"]], no_noise, opening.encryptors["p00"])
        next(program)
        absent = tuple(f"p0{i}" for i in range(1, 1 + called))
        time = world.aggregation.time
        roll = Roll(world.aggregation.parameters.label, time, absent)
        if refused:
            with pytest.raises(
                ProtocolError, match="calls 2 absent, 1 are agreed at most"
            ) as error:
                program.send({AGGREGATOR: roll})
            assert error.value.party == AGGREGATOR
        else:
            assert program.send({AGGREGATOR: roll}).outbox


def test_times_outlive_keys_and_are_never_used_twice():
    world = study(parties(4), "additive")
    for step in range(3):
        world.round()
        world.join(f"n{step}", records(1, step))
        world.leave(f"n{step}")
    world.round()
    assert {m.times.last for m in world.aggregation._members.values()} == {4}
    world.join("late", records(1, 9))
    world.aggregation.time = 2  # all keys but the times are new
    with pytest.raises(DealReusedError, match="time 3 comes after 4"):
        world.round()


@both_ways
def test_a_party_without_records_sends_what_others_send(via):
    held = parties(4) | {"empty": records(0)}
    sizes = {}

    class Noting(ByHand):
        def pack(self, sent):
            if sent.sender != AGGREGATOR:
                sizes.setdefault(sent.sender, []).append(type(sent.message))
            return super().pack(sent)

    world = study(held, via, carrier=Noting)
    assert np.array_equal(world.round().sums_, pooled(world.terms, list(held.values())).sums_)
    assert len({tuple(kinds) for kinds in sizes.values()}) == 1 and len(sizes) == 5
    assert count_query("empty", world.terms, [records(0)]).tolist() == [0] * 21
    assert count_query("empty", world.terms, []).tolist() == [0] * 21


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
    with pytest.raises(ValueError, match="z is a number: this noise is for counts"):
        Terms(schema, 3, 8, Privacy(eps=1.0))


def test_both_ways_run_from_the_programs_alone():
    """What a machine of each party would run: `take_part` there, `result_dec` at the aggregator."""
    from protocols.queries.terms import result_dec

    world = study(parties(3), "additive")
    opening = world.aggregation.release([])
    programs = {
        party: take_part(party, world.terms, [data], no_noise, opening.encryptors[party])
        for party, data in parties(3).items()
    }
    programs[AGGREGATOR] = result_dec(world.terms, world.parties, opening.opened)
    outputs, transcript = run_all(programs)
    assert np.array_equal(
        outputs[AGGREGATOR].sums, pooled(world.terms, list(parties(3).values())).sums_
    )
    assert len(transcript) == 6 and max(sent.depth for sent in transcript) == 2
