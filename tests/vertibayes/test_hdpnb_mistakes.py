"""Mistakes with HDPNB: each is named, and nothing is sent."""

import sys

import numpy as np
import pytest

from mpc.additive_scheme import Parameters
from mpc.errors import MalformedMessageError
from mpc.membership import Aggregator, Roll, pair_keys
from mpc.noise import no_noise
from protocols.accounting import Privacy
from protocols.errors import DataError
from protocols.queries.terms import Terms, read_records, take_part
from protocols.site.text import TextColumn
from protocols.variables import Variable
from tests.randomness import SeededRandomness
from tests.schemes import SMALL
from tests.vertibayes.hdpnb_worlds import SCHEMA, WAYS, parties, records, states, study
from vertibayes.naive_bayes.base import NaiveBayes, Schema
from vertibayes.naive_bayes.distributed import HDPNB, pooled


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
        ({"eps": 1, "noise": "laplace"}, "noise = 'laplace': polya or diluted"),
        ({"eps": 1, "accounting": "all"}, "accounting = 'all': whole or count"),
        ({"eps": 1, "protects": "me"}, "protects = 'me': record or party"),
    ],
)
def test_a_noise_that_is_none(privacy, reason):
    with pytest.raises(ValueError, match=reason):
        Privacy(**privacy)


@both_ways
@pytest.mark.parametrize("noise", ["polya", "diluted"])
def test_gamma_n_below_one(via, noise):
    with pytest.raises(ValueError, match=r"gamma n = 0.2 \* 4: an honest party at least"):
        study(parties(4), via, Privacy(eps=1.0, gamma=0.2, noise=noise))
    world = study(parties(5), via, Privacy(eps=90.0, gamma=0.2, noise=noise))
    world.round()
    with pytest.raises(ValueError, match=r"gamma n = 0.2 \* 4"):
        world.leave("p00")
    assert len(world.parties) == 5, "and it is still there"


def test_terms_that_cannot_be():
    for shares in ({"dishonest": -0.1}, {"dropouts": 1.0}, {"dishonest": 0.6, "dropouts": 0.6}):
        with pytest.raises(ValueError, match="shares from 0 on"):
            Terms(SCHEMA, 5, 5, None, **shares)
    with pytest.raises(ValueError, match=r"gamma = 1.0, dishonest = 0.1"):
        Terms(SCHEMA, 5, 5, Privacy(eps=1.0), dishonest=0.1)
    with pytest.raises(ValueError, match="two parties of one record are the least"):
        Terms(SCHEMA, 1, 5)


def test_noise_too_large_for_a_slot_is_refused_before_keys_and_data():
    largest = Privacy(eps=1e-10, protects="party")
    with pytest.raises(ValueError, match="no slot holds such sums"):
        Terms(SCHEMA, 10**8, 30, largest)
    with pytest.raises(ValueError, match=r"Delta / eps must be from 2\*\*-9 to 2\*\*40"):
        Terms(SCHEMA, 10, 2**30, Privacy(eps=1e-9, protects="party"))
    with pytest.raises(ValueError, match="no slot holds such sums"):
        Terms(SCHEMA, 10**6, 10**13)
    terms = Terms(SCHEMA, 10**4, 30, largest)
    sums = Parameters(SMALL, b"", terms.most_parties, terms.lowest, terms.highest)
    worst = [terms.highest] * sums.packing.slots
    totals = [sums.most * plaintext for plaintext in sums.packing.pack(worst)]
    found = sums.packing.unpack(totals, len(worst), sums.most)
    assert found.tolist() == [terms.highest * terms.most_parties] * len(worst)


def test_classes_and_categories_that_were_not_declared():
    columns = {
        "y": TextColumn.of(["s0", "s1", "s9"]),
        "a": TextColumn.of(["s0", "s3", ""]),
        "b": TextColumn.of(["s1", "s1", "s0"]),
    }
    with pytest.raises(DataError, match=r"north: the column 'y', record 3: 's9' is not one of its"):
        read_records("north", SCHEMA, columns)
    columns["y"] = TextColumn.of(["s0", "s1", "s2"])
    found = read_records("north", SCHEMA, columns | {"other": TextColumn.of("xyz")})
    assert found.codes["a"].tolist() == [0, 3, 4]
    columns["b"] = TextColumn.of(["s1", "S1", "s0"])
    with pytest.raises(DataError, match=r"north: the column 'b', record 2"):
        read_records("north", SCHEMA, columns)
    del columns["b"]
    with pytest.raises(DataError, match="north has no column 'b'"):
        read_records("north", SCHEMA, columns)


@both_ways
def test_records_of_other_states_or_too_many_are_refused_and_the_party_named(via):
    other = Schema(SCHEMA.target, SCHEMA.features | {"a": Variable("a", states(5))})
    with pytest.raises(DataError, match="x has not 'a' in the declared states"):
        study(parties(3) | {"x": records(2, 1, other)}, via)
    world = study(parties(3), via, most_records=8)
    with pytest.raises(DataError, match="more has more records than the 8 agreed"):
        world.join("more", records(9))
    assert world.parties == ("p00", "p01", "p02")
    world.add("p01", records(5))
    with pytest.raises(DataError, match="p01 has more records than the 8 agreed"):
        world.round()
    with pytest.raises(ValueError, match="nobody is no member"):
        world.add("nobody", records(1))


@both_ways
def test_members_that_cannot_be(via):
    with pytest.raises(ValueError, match="1 parties: from 2 to 20"):
        study(parties(1), via)
    with pytest.raises(ValueError, match="the aggregator's name"):
        study(parties(2) | {"aggregator": records(2)}, via)
    with pytest.raises(ValueError, match="additive or masked"):
        HDPNB(Terms(SCHEMA, 3, 9), parties(2), via="paillier")
    world = study(parties(3), via, most_parties=3, dropouts=0.7)
    with pytest.raises(ValueError, match="p00 is a member already"):
        world.join("p00", records(1))
    with pytest.raises(ValueError, match="4 parties: from 2 to 3"):
        world.join("p09", records(1))
    with pytest.raises(ValueError, match="p09 is no member"):
        world.leave("p09")
    with pytest.raises(ValueError, match="p09 is no member, and cannot be absent"):
        world.round(absent=["p09"])
    with pytest.raises(ValueError, match="1 of 3 parties are there: two at least"):
        world.round(absent=["p00", "p01"])
    with pytest.raises(ValueError, match="0 of 3 parties are there: two at least"):
        world.round(absent=["p00", "p01", "p02"])
    world.leave("p00")
    with pytest.raises(ValueError, match="1 parties: from 2 to 3"):
        world.leave("p01")


@both_ways
def test_more_absent_than_agreed(via):
    world = study(parties(10), via, dropouts=0.1)
    with pytest.raises(ValueError, match=r"2 of 10 parties are absent, 1 may be at most"):
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
    import mpc.noise.geometric as geometric

    for name in ("opendp", "opendp.measurements", "opendp.mod"):
        monkeypatch.setitem(sys.modules, name, None)
    geometric._measurement.cache_clear()
    world = study(parties(3), "masked", Privacy(eps=1.0, noise="diluted"))
    with pytest.raises(ImportError, match=r"pip install 'vertibayes\[noise\]'"):
        world.round()
    geometric._measurement.cache_clear()
    assert isinstance(study(parties(3), "masked", Privacy(eps=90.0)).round(), NaiveBayes)


# ---- an aggregator that tells each party of other absent -----------------------------------------


def called_away(world):
    """Choose whom to call away so that each party hears of no more than it accepts."""
    groups, most = world.aggregation.groups, world.terms.absent(len(world.parties))
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
    groups, away = world.aggregation.groups, called_away(world)
    present = sorted(set(world.parties) - away)
    opening = world.aggregation.release([])
    label, time = world.aggregation.parameters.label, world.aggregation.time
    received = {}
    for party in present:
        data = world._holders[party].batches[0].data
        program = take_part(party, world.terms, [data], no_noise, opening.encryptors[party])
        next(program)
        told = tuple(sorted(away & groups.neighbours(party)))
        received[party] = program.send({AGGREGATOR: Roll(label, time, told)}).outbox[AGGREGATOR]
    streams = world.aggregation._streams(AGGREGATOR, present)
    aggregator = Aggregator(world.aggregation.parameters, AGGREGATOR, streams)
    return away, aggregator.decrypt(received, time, world.terms.counts, [])


def ring_of_six():
    held = {f"q{i:04}": records(1, i) for i in range(120)}
    return study(held, "additive", None, most_parties=120, dropouts=0.05)


def test_a_roll_for_each_party_calls_nobody_away_unseen():
    """Six may be absent of 120; trimmed to its three blocks, a roll of twelve looks like six."""
    with pytest.raises(MalformedMessageError, match="not 1 modulo N"):
        trimmed_rolls(ring_of_six())


def test_without_the_roll_in_the_base_twice_as_many_are_called_away(monkeypatch):
    monkeypatch.setattr(pair_keys, "roll_digest", lambda absent: b"")
    world = ring_of_six()
    away, sums = trimmed_rolls(world)
    assert len(away) > world.terms.absent(120) == 6
    present = [h.batches[0].data for p, h in world._holders.items() if p not in away]
    assert np.array_equal(sums, pooled(world.terms, present).sums_)
