"""Promises: what they say, what several of them add up to, and what they leave out."""

import json
import math

import pytest

from tests.randomness import SeededRandomness
from tests.vertibayes.hdpnb_worlds import SCHEMA
from vertibayes_protocols.accounting import TAIL, Accounting, Privacy
from vertibayes_protocols.budget import Cost, eps_of, rho_of
from vertibayes_protocols.promise import UNITS, Promise


def promise(**changes):
    fields = {"eps": 0.5, "delta": 1e-9, "protects": "record", "mechanism": "laplace"}
    return Promise(**(fields | {"cost": Cost.of(0.5, 1e-9)} | changes))


@pytest.mark.parametrize(("unit", "words"), UNITS.items())
def test_the_sentence_names_eps_delta_unit_and_adversary(unit, words):
    sentence = promise(protects=unit).sentence
    assert sentence == (
        f"The model is (0.5, 1e-09)-differentially private for {words}, against whoever sees the "
        "release."
    )


def test_the_sentence_names_composition_noise_and_what_is_not_protected():
    given = promise(composition="zCDP", noise="it has a scale of 3", whom="the analyst")
    assert "private by zCDP for" in given.sentence and "against the analyst;" in given.sentence
    assert given.sentence.endswith("; it has a scale of 3.")
    beside = given.beside("the record count").beside("the states")
    assert beside.sentence.endswith(" Not protected: the record count; the states.")
    assert beside.beyond == "not protected by the noise: the record count; the states"
    assert not given.uncovered, "the other promise stays as it was"


def test_releases_add_up():
    three = promise().times(3)
    assert (three.eps, three.delta, three.releases) == pytest.approx((1.5, 3e-9, 3))
    assert three.cost == Cost.of(0.5, 1e-9).times(3)
    assert "over 3 releases" in three.sentence and "over" not in promise().sentence
    assert promise(delta=0.6, cost=Cost.of(0.5, 0.6)).times(2).delta == 1


def test_under_zcdp_delta_stays_and_eps_grows_with_the_root_of_the_number():
    rho = rho_of(0.5, 1e-5)
    cost = Cost(0.5, 1e-5 + TAIL, rho, TAIL)
    one = promise(composition="zCDP", delta=1e-5 + TAIL, cost=cost)
    assert one.times(1).eps == pytest.approx(0.5)
    hundred = one.times(100)
    assert hundred.delta == one.delta
    assert hundred.eps == pytest.approx(eps_of(100 * rho, 1e-5)) == pytest.approx(5.4, rel=0.02)


def test_releases_of_different_cost_add_up():
    cost = Cost.of(0.5, 1e-9).plus(Cost.of(0.1, 1e-8))
    both = promise().over(cost, 2)
    assert (both.eps, both.delta, both.releases) == pytest.approx((0.6, 1.1e-8, 2))


def test_json_has_all_fields_and_the_sentence():
    given = promise(uncovered=("the record count",))
    read = json.loads(json.dumps(given.to_json()))
    assert read["sentence"] == given.sentence and read["uncovered"] == ["the record count"]
    assert read["cost"] == {"eps": 0.5, "delta": 1e-9, "rho": 0.125, "slack": 1e-9}
    assert {"eps", "delta", "protects", "mechanism", "composition", "whom", "noise"} <= set(read)


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "polya", "diluted"])
def test_local_noise_depends_on_nobody_and_shares_on_honest_members(noise):
    accounting = Accounting(SCHEMA, Privacy(eps=1.0, noise=noise, gamma=0.5))
    noises = [accounting.noise(10, SeededRandomness()) for _ in range(10)]
    given = accounting.promise(noises, 10, 4, checked=False)
    local = noise in ("laplace", "gaussian")
    assert ("against the aggregator and all other members together" in given.sentence) == local
    assert ("if 5 of all 10 are honest" in given.sentence) == (not local)
    assert ("which the aggregator is trusted with" in given.sentence) == (not local)
    assert ("by zCDP" in given.sentence) == (noise == "gaussian")
    assert given.mechanism == noise and given.cost == accounting.cost(10)
    assert given.honest == (1 if local else 5)
    if local:
        assert given.copies == pytest.approx(10)
        assert given.sd == pytest.approx(math.sqrt(10 * accounting.copy().variance))
