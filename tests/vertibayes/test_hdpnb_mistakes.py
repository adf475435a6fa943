"""Mistakes with HDPNB: each is named, and nothing is sent."""

import sys

import numpy as np
import pytest

from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from tests.vertibayes.hdpnb_worlds import SCHEMA, WAYS, parties, pooled, records, states, study
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.distributed import HDPNB
from vertibayes_mpc.additive_scheme import Parameters
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.membership import Aggregator, Roll, pair_keys
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.engine import answer, consider
from vertibayes_protocols.errors import DataError, QueryRefusedError
from vertibayes_protocols.federation import ANALYST
from vertibayes_protocols.queries import Sums
from vertibayes_protocols.queries.sums.aggregations import parameters_of
from vertibayes_protocols.queries.sums.sums import PAIRS
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.roles import agree_pairs
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.variables import Variable


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Parameters, "least_bits", 0)


both_ways = pytest.mark.parametrize("via", WAYS)


@pytest.mark.parametrize(
    ("privacy", "reason"),
    [
        ({"eps": 0}, "eps = 0"),
        ({"eps": -1}, "eps = -1"),
        ({"eps": float("nan")}, "eps = nan"),
        ({"eps": float("inf")}, "eps = inf"),
        ({"eps": 1, "delta": 0}, "delta = 0"),
        ({"eps": 1, "gamma": 0}, "gamma = 0"),
        ({"eps": 1, "gamma": 1.5}, "gamma = 1.5"),
        ({"eps": 1, "noise": "geometric"}, "must be polya or diluted or laplace or gaussian"),
        ({"eps": 1, "noise": "gaussian", "accounting": "count"}, "needs accounting = 'whole'"),
        ({"eps": 1, "accounting": "all"}, "accounting = 'all': it must be whole or count"),
        ({"eps": 1, "protects": "me"}, "protects = 'me': it must be record or party"),
    ],
)
def test_a_noise_that_is_none(privacy, reason):
    with pytest.raises(ValueError, match=reason):
        Privacy(**privacy)


@both_ways
@pytest.mark.parametrize("noise", ["polya", "diluted"])
def test_gamma_n_below_one(via, noise):
    with pytest.raises(ValueError, match=r"gamma n = 0.2 \* 4: it must be at least one honest"):
        study(parties(4), via, Privacy(eps=1.0, gamma=0.2, noise=noise))
    world = study(parties(5), via, Privacy(eps=90.0, gamma=0.2, noise=noise))
    world.round()
    with pytest.raises(ValueError, match=r"gamma n = 0.2 \* 4"):
        world.leave("p00")
    assert len(world.parties) == 5, "and it is still there"


def test_terms_that_cannot_be():
    for shares in ({"dishonest": -0.1}, {"dropouts": 1.0}, {"dishonest": 0.6, "dropouts": 0.6}):
        with pytest.raises(ValueError, match="must be shares of at least 0"):
            Terms(SCHEMA, 5, 5, None, **shares)
    with pytest.raises(ValueError, match=r"gamma = 1.0, dishonest = 0.1"):
        Terms(SCHEMA, 5, 5, Privacy(eps=1.0), dishonest=0.1)
    with pytest.raises(ValueError, match="most_parties must be at least 2"):
        Terms(SCHEMA, 1, 5)


def test_noise_too_large_for_a_slot_is_refused_before_keys_and_data():
    largest = Privacy(eps=1e-10, protects="party")
    with pytest.raises(ValueError, match="no slot holds such sums"):
        Terms(SCHEMA, 10**8, 30, largest).check()
    with pytest.raises(ValueError, match=r"Delta / eps must be from 2\*\*-9 to 2\*\*40"):
        Terms(SCHEMA, 10, 2**30, Privacy(eps=1e-9, protects="party")).check()
    with pytest.raises(ValueError, match="no slot holds such sums"):
        Terms(SCHEMA, 10**6, 10**13).check()
    terms = Terms(SCHEMA, 10**4, 30, largest)
    sums = Parameters(SMALL, b"", terms.most_parties, terms.lowest, terms.highest)
    worst = [terms.highest] * sums.packing.slots
    totals = [sums.most * plaintext for plaintext in sums.packing.pack(worst)]
    found = sums.packing.unpack(totals, len(worst), sums.most)
    assert found.tolist() == [terms.highest * terms.most_parties] * len(worst)


@both_ways
def test_records_of_other_states_or_too_many_are_refused_and_the_party_named(via):
    other = Schema(SCHEMA.target, SCHEMA.features | {"a": Variable("a", states(5))})
    with pytest.raises(DataError, match="x does not have 'a' in the declared states"):
        study(parties(3) | {"x": records(2, 1, other)}, via)
    world = study(parties(3), via, most_records=8)
    with pytest.raises(DataError, match="more has more records than the 8 agreed"):
        world.join("more", records(9))
    assert world.parties == ("p00", "p01", "p02")
    world.add("p01", records(5))
    with pytest.raises(DataError, match="p01 has more records than the 8 agreed"):
        world.round()
    with pytest.raises(ValueError, match="nobody is not a member"):
        world.add("nobody", records(1))


@both_ways
def test_members_that_cannot_be(via):
    with pytest.raises(ValueError, match="1 parties: there must be from 2 to 20"):
        study(parties(1), via)
    with pytest.raises(ValueError, match="'analyst' is the name of another party"):
        study(parties(2) | {"analyst": records(2)}, via)
    with pytest.raises(ValueError, match="via = 'paillier': it must be additive or masked"):
        HDPNB(Terms(SCHEMA, 3, 9), parties(2), via="paillier")
    world = study(parties(3), via, most_parties=3, dropouts=0.7)
    with pytest.raises(ValueError, match="p00 is a member already"):
        world.join("p00", records(1))
    with pytest.raises(ValueError, match="4 parties: there must be from 2 to 3"):
        world.join("p09", records(1))
    with pytest.raises(ValueError, match="p09 is not a member"):
        world.leave("p09")
    with pytest.raises(ValueError, match="p09 is not a member, and cannot be absent"):
        world.round(absent=["p09"])
    with pytest.raises(ValueError, match="1 of 3 parties are there: a sum needs at least two"):
        world.round(absent=["p00", "p01"])
    with pytest.raises(ValueError, match="0 of 3 parties are there: a sum needs at least two"):
        world.round(absent=["p00", "p01", "p02"])
    world.leave("p00")
    with pytest.raises(ValueError, match="1 parties: there must be from 2 to 3"):
        world.leave("p01")
    with pytest.raises(ValueError, match="'analyst' is the name of another party"):
        world.join("analyst", records(1))
    assert world.parties == ("p01", "p02"), "and it is not taken in"


@both_ways
def test_more_absent_than_agreed(via):
    world = study(parties(10), via, dropouts=0.1)
    with pytest.raises(ValueError, match=r"2 of 10 parties are absent: at most 1 may be"):
        world.round(absent=["p00", "p01"])
    world.round(absent=["p00"])


def test_one_class_alone():
    with pytest.raises(ValueError, match="fewer than two classes"):
        Schema(Variable("y", ("only",)), SCHEMA.features)
    held = {party: records(4, 1) for party in ("p0", "p1")}
    for data in held.values():
        data.codes["y"][:] = 1
    model = study(held, "masked").round()
    found = model.predict_proba(records(9))
    assert found[:, 1] == pytest.approx(1) and not np.isnan(found).any()
    none = {party: records(0) for party in ("p0", "p1")}
    with pytest.raises(ValueError, match="no class has a record"):
        study(none, "masked").round()


@both_ways
@pytest.mark.parametrize("noise", ["polya", "diluted"])
def test_no_nan_and_no_negative_probability_under_large_noise(via, noise):
    held, test, learned = parties(4), records(30, 8), 0
    for seed in range(8):
        privacy = Privacy(eps=0.05, noise=noise)
        world = study(held, via, privacy, alpha=0.0, randomness=SeededRandomness(b"%d" % seed))
        try:
            found = world.round().predict_proba(test)
        except ValueError as error:
            assert "noise alone" in str(error)  # noqa: PT017
            continue
        learned += (world.model_.sums_ < 0).any()
        assert (found >= 0).all() and found.sum(axis=1) == pytest.approx(1)
    assert learned, "a model of sums that noise has made negative"


def test_without_opendp_the_extra_is_named(monkeypatch):
    from vertibayes_mpc.noise.copies import measurement

    for name in ("opendp", "opendp.measurements", "opendp.mod"):
        monkeypatch.setitem(sys.modules, name, None)
    measurement.cache_clear()
    world = study(parties(3), "masked", Privacy(eps=1.0, noise="diluted"))
    monkeypatch.setattr("vertibayes_protocols.engine.find_spec", lambda name: None)
    with pytest.raises(QueryRefusedError, match="diluted noise needs OpenDP, which is not inst"):
        world.round()
    assert world.spent is None, "and nothing was sent"
    measurement.cache_clear()
    assert isinstance(study(parties(3), "masked", Privacy(eps=90.0)).round(), NaiveBayes)


# ---- an aggregator that tells each party of other absent -----------------------------------------


def called_away(world):
    """Choose whom to call away so that each party hears of no more than it accepts."""
    groups, most = world.members._groups, world.terms.absent(len(world.parties))
    away = set()
    for block in groups.blocks:
        for party in sorted(block):
            tried = away | {party}
            around = [groups.neighbours(q) | {q} for q in groups.neighbours(party) | {party}]
            if 3 * len(block & tried) <= len(block) and all(len(tried & a) <= most for a in around):
                away = tried
    return away


def trimmed_rolls(world):
    """Answer rolls that name to each party those of its own neighbourhood alone, and open."""
    analyst, away = world.federation.analyst, called_away(world)
    present = sorted(set(world.parties) - away)
    query = Sums.of(analyst, world.terms, world.members)
    parameters = parameters_of(query.summation(), SMALL)
    received = {}
    for party in present:
        site = world.federation.roles[party]
        program = answer(site, consider(site, query))
        next(program)
        told = tuple(sorted(away & world.members._groups.neighbours(party)))
        roll = Roll(parameters.label, query.number, told)
        received[party] = program.send({ANALYST: roll}).outbox[ANALYST]
    aggregator = Aggregator(parameters, ANALYST, agree_pairs(analyst, present, PAIRS))
    return away, aggregator.decrypt(received, query.number, world.terms.counts, [])


def ring_of_six():
    held = {f"q{i:04}": records(1, i) for i in range(120)}
    return study(held, "additive", None, most_parties=120, dropouts=0.05)


def test_a_roll_for_each_party_calls_nobody_away_unseen():
    """Six may be absent of 120; trimmed to its three blocks, a roll of twelve looks like six."""
    with pytest.raises(UnknownFaultyPartyError, match="not 1 modulo N"):
        trimmed_rolls(ring_of_six())


def test_without_the_roll_in_the_base_twice_as_many_are_called_away(monkeypatch):
    monkeypatch.setattr(pair_keys, "roll_digest", lambda absent: b"")
    world = ring_of_six()
    away, sums = trimmed_rolls(world)
    assert len(away) > world.terms.absent(120) == 6
    present = [h.batches[0].data for p, h in world._holders.items() if p not in away]
    assert np.array_equal(sums, pooled(world.terms, present).sums_)
