"""What noise promises: by hand, and against the law of what is released."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tests.noise_law import diluted_law, fit, polya_law
from tests.randomness import SeededRandomness
from tests.vertibayes.hdpnb_worlds import (
    SCHEMA,
    WAYS,
    federation_of,
    parties,
    pooled,
    records,
    states,
    study,
)
from vertibayes_mpc.additive_scheme import Parameters
from vertibayes_mpc.noise import DilutedGeometric, PolyaShare
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.accounting import SAMPLER, TAIL, Accounting, Privacy
from vertibayes_protocols.budget import eps_of
from vertibayes_protocols.queries import Sums
from vertibayes_protocols.queries.sums import aggregations
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms, data_pert
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Parameters, "least_bits", 0)


def accounting(most_records=5, **privacy):
    return Accounting(SCHEMA, Privacy(**privacy), most_records)


def noises(found, n, estimate=None):
    return [found.noise(estimate or n, SeededRandomness()) for _ in range(n)]


# SCHEMA: tables of 3, 12 and 6 counts; a record is in one of each.


def test_slots_have_room_but_for_a_chance_by_hand():
    """2^-64 in delta: the chance of a slot too small is that over 1 + e^eps, shared by all."""
    found = accounting(eps=3.0)
    chance = 2.0**-64 / (1 + math.exp(3.0)) / (20 * 21)
    assert found.reach(20, 21) == found.copy().bound(1, chance) > found.copy().bound(1, 20 * chance)


def test_a_record_by_hand():
    paper = accounting(eps=0.3, accounting="count", noise="diluted", delta=1e-5)
    promise = paper.promise(noises(paper, 100), 100)
    assert (promise.sensitivity, promise.tables, promise.counts) == (1, 3, 3)
    assert promise.eps_of_a_count == 0.3 and promise.delta_of_a_count == 1e-5
    assert promise.eps == pytest.approx(0.9) and promise.delta == pytest.approx(3e-5)
    assert promise.copies == pytest.approx(math.log(1e5))
    alpha = math.exp(0.3)
    variance = math.log(1e5) * 2 * alpha / (alpha - 1) ** 2
    assert promise.sd == pytest.approx(math.sqrt(variance))

    whole = accounting(eps=0.3, noise="diluted", delta=1e-5)
    promise = whole.promise(noises(whole, 100), 100)
    assert promise.eps == pytest.approx(0.3) and promise.delta == pytest.approx(1e-5)
    assert promise.eps_of_a_count == pytest.approx(0.1)
    assert promise.delta_of_a_count == pytest.approx(1e-5 / 3)
    assert promise.copies == pytest.approx(math.log(3e5))


def test_a_party_by_hand():
    found = accounting(most_records=5, eps=0.3, protects="party", noise="diluted", delta=1e-5)
    promise = found.promise(noises(found, 100), 100)
    # 5 records change 3 counts of the first table at most, 5 of the second, 5 of the third.
    assert (promise.sensitivity, promise.tables, promise.counts) == (5, 3, 13)
    assert promise.eps == pytest.approx(0.3) and promise.delta == pytest.approx(1e-5)
    assert promise.delta_of_a_count == pytest.approx(1e-5 / 13)
    alpha = math.exp(0.1 / 5)
    wanted = math.log(13e5) * 2 * alpha / (alpha - 1) ** 2
    assert promise.sd == pytest.approx(math.sqrt(wanted))
    assert found.noise(100, SeededRandomness()).Delta == 5


def test_polya_shares_by_hand():
    found = accounting(eps=0.3, gamma=0.5)
    promise = found.promise(noises(found, 10), 10, 5)
    assert isinstance(found.noise(10, SeededRandomness()), PolyaShare)
    assert promise.copies == pytest.approx(2) and promise.honest == 5 and promise.colluding == 5
    assert promise.delta_of_a_count == 0
    assert promise.delta == pytest.approx(TAIL + 10 * (1 + math.exp(0.3)) * SAMPLER)


def test_no_promise_depends_on_a_belief_above_the_number_of_members():
    """u_k in (n/2, n]: copies between what is wanted and twice that, never less."""
    for n in (4, 5, 17, 100):
        for name in ("polya", "diluted"):
            found = accounting(eps=1.0, noise=name, gamma=0.5, delta=0.1)
            world = study_estimates(n)
            drawn = [found.noise(u, SeededRandomness()) for u in world]
            honest = sorted(noise.copies for noise in drawn)[: found.honest(n)]
            if name == "polya":
                assert sum(honest) >= 1 - 1e-12
                assert sum(noise.copies for noise in drawn) <= 4.5 + n % 2
            else:
                none = math.prod(1 - min(beta, 1) for beta in honest)
                assert none <= found.delta_of_a_count


def study_estimates(n):
    from vertibayes_mpc.membership import Estimates

    return Estimates(map(str, range(n))).values.values()


def test_a_small_estimate_still_has_an_honest_party():
    found = accounting(eps=1.0, noise="diluted", gamma=1 / 3)
    assert found.noise(2, SeededRandomness()).beta == 1
    assert found.noise(2, SeededRandomness()).n == 3, "no more than there are"
    assert found.honest(3) == 1  # 1 / 3 is written .3333333333333333, three times which is below 1
    polya = accounting(eps=1.0, gamma=0.25)
    assert polya.noise(3, SeededRandomness()).n == 1


def test_shares_are_taken_as_they_are_written():
    found = accounting(eps=1.0, gamma=0.1)
    assert [found.honest(n) for n in (10, 30, 31)] == [1, 3, 4]
    terms = Terms(SCHEMA, 100, 5, dropouts=0.29)
    assert terms.absent(100) == 29


@pytest.mark.parametrize("protects", ["record", "party"])
def test_neighbours_differ_by_no_more_than_is_promised_and_sometimes_by_as_much(protects):
    most = 4 if protects == "party" else 1
    found = accounting(most_records=4, eps=1.0, protects=protects)
    apart = {"y": [0, 1, 2, 0], "a": [0, 1, 2, 3], "b": [0, 1, 0, 1]}
    worst = LocalData(SCHEMA.variables, {name: np.array(c)[:most] for name, c in apart.items()})
    alike = worst.rows(np.zeros(most, int))
    others = [records(most, seed) for seed in range(99)]
    changes = [SCHEMA.measure(data) for data in (worst, alike, *others)]
    assert max(change.max() for change in changes) == found.sensitivity
    assert max(np.count_nonzero(change) for change in changes) == found.counts
    assert {change.sum() for change in changes} == {most * found.tables}


# ---- numbers -------------------------------------------------------------------------------------

Z, W = Numeric("z", -1.0, 3.0), Numeric("w", 0.0, 500.0)
NUMBERS = Schema(
    Variable("y", states(4)),
    {"a": Variable("a", states(3)), "z": Z, "w": W},
    centred=True,
)


def numbered(y, a, z, w):
    columns = {"y": np.array(y, int), "a": np.array(a, int)}
    numbers = {"z": np.array(z, float), "w": np.array(w, float)}
    return LocalData(NUMBERS.variables, columns, {"z": Z, "w": W}, numbers)


def drawn_numbers(count, seed, schema=NUMBERS):
    generator = np.random.default_rng(seed)
    codes = {n: generator.integers(0, len(v.states), count) for n, v in schema.variables.items()}
    numbers = {n: generator.uniform(c.low - 1, c.high, count) for n, c in schema.numerics.items()}
    return LocalData(schema.variables, codes, schema.numerics, numbers)


def many_numbers():
    """Return a schema with many sums, for the laws of noise."""
    columns = {f"z{i}": Numeric(f"z{i}", -1.0, 10.0**i) for i in range(16)}
    return Schema(NUMBERS.target, {"a": NUMBERS.features["a"], **columns}, centred=True)


def test_parts_of_numbers_by_hand():
    """T = 1 + F_cat + 2 F_num: the class, a within classes, and z and w twice."""
    found = Accounting(NUMBERS, Privacy(eps=0.6), 5)
    tables = [(4, 1), (12, 1)]
    assert found.parts == tuple(tables + 2 * [(4, 2**11), (4, 2**22)])
    assert (found.tables, found.counts, found.sensitivity) == (6, 6, 1)
    assert found.eps_of_a_count == pytest.approx(0.1) and found.eps == pytest.approx(0.6)
    source = SeededRandomness()
    assert [found.noise(3, source, part.Delta).Delta for part in found.parts[2:4]] == [2**11, 2**22]

    party = Accounting(NUMBERS, Privacy(eps=0.6, protects="party", noise="diluted"), 5)
    # 5 records change 4 values of the class, 5 of a, and 4 of each sum of numbers at most.
    assert (party.tables, party.counts, party.sensitivity) == (6, 4 + 5 + 4 * 4, 5)
    assert party.copy(2**11).Delta == 5 * 2**11
    assert party.delta_of_a_count == pytest.approx(1e-5 / 25)

    gaussian = Accounting(NUMBERS, Privacy(eps=0.6, noise="gaussian"), 5)
    shares = [part.Delta**2 / (2 * gaussian.copy(part.Delta).scale ** 2) for part in gaussian.parts]
    assert shares == pytest.approx([gaussian.rho / 6] * 6)
    assert eps_of(sum(shares), 1e-5) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="a release has 32 values, got 31"):
        gaussian.noise_of_all(3, source)(31)


def changed_by(data):
    """Return the changes of each part by these records beside six others."""
    rest = drawn_numbers(6, 1)
    both = numbered(*(
        np.append({**rest.codes, **rest.numbers}[n], {**data.codes, **data.numbers}[n])
        for n in ("y", "a", "z", "w")
    ))  # fmt: skip
    change = NUMBERS.measure(both) - NUMBERS.measure(rest)
    cells = [part.cells for part in Accounting(NUMBERS, Privacy(eps=1.0)).parts]
    return np.split(change, np.cumsum(cells)[:-1])


anything = st.one_of(st.floats(-1e3, 1e3), st.sampled_from([math.nan, 1e300, -1e300]))
one_record = st.tuples(st.integers(0, 4), st.integers(0, 3), anything, anything)


@settings(deadline=None)
@given(st.lists(one_record, min_size=1, max_size=4))
def test_no_record_and_no_party_changes_a_part_by_more_than_its_sensitivity(drawn):
    changes = changed_by(numbered(*zip(*drawn, strict=True)))
    for protects in ("record", "party") if len(drawn) == 1 else ("party",):
        found = Accounting(NUMBERS, Privacy(eps=1.0, protects=protects), len(drawn))
        for part, change in zip(found.parts, changes, strict=True):
            assert np.abs(change).sum() <= found.sensitivity * part.Delta
            assert np.count_nonzero(change) <= min(found.sensitivity, part.cells)


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize(("z", "w"), [(3.0, 500.0), (-1.0, 0.0), (1e300, -7.0)])
def test_records_at_the_bounds_reach_the_sensitivity(most, z, w):
    changes = changed_by(numbered([2] * most, [1] * most, [z] * most, [w] * most))
    found = Accounting(NUMBERS, Privacy(eps=1.0, protects="party"), most)
    for part, change in zip(found.parts, changes, strict=True):
        assert np.abs(change).sum() == most * part.Delta


@pytest.mark.laws
@pytest.mark.parametrize("via", WAYS)
@pytest.mark.parametrize("noise", ["polya", "laplace", "gaussian"])
def test_sums_of_numbers_have_the_noise_that_is_promised_for_each_value(via, noise):
    schema = many_numbers()
    held = {f"p{i}": drawn_numbers(5, i, schema) for i in range(10)}
    federation = federation_of(held, SystemRandomness())  # OpenDP cannot be seeded
    terms = Terms(schema, 20, 5, Privacy(eps=34.0, noise=noise))
    exact = sum(schema.measure(data) for data in held.values())
    found = []
    for _ in range(9):
        query = Sums.of(federation.analyst, terms, Members(terms, held, via))
        with federation.session() as session:
            released = session.ask(query)
        found.append(released.sums - exact)
    off, start = np.array(found, float), 0
    sds = {}
    for part in terms.accounting.parts:
        estimates = [query.estimate(party) for party in held]
        noises = [terms.accounting.noise(u, SystemRandomness(), part.Delta) for u in estimates]
        sds[part.Delta] = math.sqrt(math.fsum(each.variance for each in noises))
        off[:, start : start + part.cells] /= sds[part.Delta]
        start += part.cells
    assert released.promise.sd == pytest.approx(sds[1])
    sums, squares = (off[:, 16:].reshape(9, 16, 2, 4)[:, :, power] for power in (0, 1))
    for name, group in (("sums", sums), ("squares", squares)):
        error = math.sqrt(5 / group.size)  # of a variance of 1, for a kurtosis of 6: one copy
        assert abs(group.var() - 1) < 6 * error < 0.6, name
        assert abs(group.mean()) < 6 / math.sqrt(group.size), name
        assert abs((group / 2).var() - 1) > 6 * error, "half the noise would be noticed"


# ---- several releases ----------------------------------------------------------------------------


def memory_of(world, party):
    federation = world.federation
    role = federation.roles.get(party)
    return role.memory if role is not None else federation._memories[party]


def dominates(memory, spent):
    return all(more >= less for more, less in zip(memory.spent, spent.cost, strict=True))


@pytest.mark.parametrize("protects", ["record", "party"])
@pytest.mark.parametrize("noise", ["polya", "gaussian"])
def test_ledger_and_memories_agree_with_what_is_spent_over_joins_and_leaves(protects, noise):
    generator = np.random.default_rng(5)
    eps = {"polya": 300.0, "gaussian": 50.0 if protects == "record" else 3000.0}[noise]
    privacy = Privacy(eps=eps, protects=protects, noise=noise, gamma=0.7)
    world = study(parties(4, each=30), "masked", privacy, dropouts=0.3)
    everyone = {f"p{i:02}": records(30, i) for i in range(9)}
    releases = returned = 0
    for step in range(45):
        away = sorted(set(everyone) - set(world.parties))
        action = generator.integers(5)
        if action == 0 and away:
            party = away[generator.integers(len(away))]
            returned += party in world._left
            world.join(party, everyone[party])
        elif action == 1 and len(world.parties) > 3:
            world.leave(world.parties[generator.integers(len(world.parties))])
        elif action == 2:
            world.add(world.parties[generator.integers(len(world.parties))], records(3, step))
        else:
            missing = int(generator.integers(0, world.terms.absent(len(world.parties)) + 1))
            absent = generator.permutation(world.parties)[:missing].tolist()
            (world.round if action == 3 else world.increment)(absent=absent)
            releases += 1
            said = [f.what for f in world.federation.analyst.ledger.facts if "so far" in f.what]
            assert f"all releases of the study so far: {world.spent.sentence}" in said
            for party, holder in (world._holders | world._left).items():
                memory = memory_of(world, party)
                assert memory.spent == holder.spent.cost, "all that the party took part in"
                assert all(dominates(memory, batch.spent) for batch in holder.batches)
            memories = [memory_of(world, party).spent for party in world._holders | world._left]
            most = [max(costs) for costs in zip(*memories, strict=True)]
            assert all(own <= site for own, site in zip(world.spent.cost, most, strict=True))
            if protects == "party":
                assert list(world.spent.cost) == most
    assert releases > 10 and world.spent.releases > 3 and returned


def test_releases_add_up_and_disjoint_batches_do_not():
    world = study(parties(4), "masked", Privacy(eps=30.0))
    assert world.spent is None
    world.round()
    one = world.spent
    world.round()
    assert world.spent.releases == 2
    assert world.spent.eps == pytest.approx(2 * one.eps) == pytest.approx(60)
    assert world.spent.delta == pytest.approx(2 * one.delta)

    batches = study(parties(4), "masked", Privacy(eps=30.0))
    batches.increment()
    for seed in range(3):
        batches.add("p01", records(3, seed), disjoint=True)
        batches.increment()
    assert batches.spent.eps == pytest.approx(30) and batches.spent.releases == 1

    whole = study(parties(4), "masked", Privacy(eps=2000.0, protects="party"))
    whole.increment()
    whole.add("p01", records(3, 9))
    whole.increment()
    assert whole.spent.eps == pytest.approx(4000), "a party's batches are all the party's"


@pytest.mark.parametrize("disjoint", [False, True])
def test_records_that_a_party_adds_again_are_charged_again(disjoint):
    """They have no identifiers: a promise that they are others is the control, here a false one."""
    held = parties(4)
    world = study(held, "masked", Privacy(eps=30.0))
    world.increment()
    for _ in range(6):
        world.add("p01", held["p01"], disjoint=disjoint)
        world.increment()
    assert world.spent.releases == (1 if disjoint else 7)
    assert world.spent.eps == pytest.approx(30 if disjoint else 7 * 30)


def test_leaving_and_coming_back_buys_no_privacy():
    for protects in ("record", "party"):
        held = parties(2)
        world = study(held, "masked", Privacy(eps=900.0, protects=protects))
        world.round()
        world.round()
        world.join("new", records(5, 5))
        world.leave("p00")
        assert world.spent.releases == 2, "who left has spent it"
        world.join("p00", held["p00"])
        world.leave("p01")
        world.round()
        assert world.spent.releases == 3


def test_the_promise_says_who_must_be_there_and_who_checks(monkeypatch):
    held, privacy = parties(10), Privacy(eps=30.0, gamma=0.8)
    agreed = {"dishonest": 0.1, "dropouts": 0.1}
    additive = study(held, "additive", privacy, **agreed)
    additive.round(absent=["p03"])
    promise = additive.promise_
    assert (promise.members, promise.present, promise.honest) == (10, 9, 8)
    assert promise.checked and promise.colluding == 1
    masked = study(held, "masked", privacy, **agreed)
    masked.round(absent=["p03"])
    assert masked.promise_.checked, "9 of 10 must be left, one of them dishonest"
    # Were the graph not complete, 8 would be a quorum, and seven of them honest.
    monkeypatch.setattr(aggregations, "ALL_TO_ALL", 0)
    masked.round()
    assert not masked.promise_.checked and "trusted" in masked.promise_.sentence
    assert json.loads(json.dumps(promise.to_json()))["sentence"] == promise.sentence
    assert "(30, " in promise.sentence and "if 8 of all 10" in promise.sentence
    assert "up to 1 members" in promise.sentence and "adding or removing one" in promise.sentence


# ---- noise really added --------------------------------------------------------------------------


@pytest.mark.laws
@pytest.mark.parametrize("via", WAYS)
@pytest.mark.parametrize("noise", ["polya", "diluted"])
def test_released_sums_have_the_noise_that_is_promised(via, noise):
    held = parties(6, each=2)
    privacy = Privacy(eps=1.5, noise=noise, gamma=0.5, delta=0.2)
    # OpenDP cannot be seeded: of fresh draws, a p-value below 1e-6 comes once in a million runs.
    world = study(held, via, privacy, randomness=SystemRandomness())
    exact, found = pooled(world.terms, list(held.values())).sums_, []
    while len(found) < 60:
        try:
            found.append(world.round().sums_ - exact)
        except ValueError as error:
            assert "noise alone" in str(error)  # noqa: PT017
    noise_found, promise = np.concatenate(found).astype(float), world.promise_
    n = len(noise_found)
    variance, kurtosis = noise_found.var(), ((noise_found - noise_found.mean()) ** 4).mean()
    error = math.sqrt((kurtosis - variance**2) / n)
    assert abs(variance - promise.sd**2) < 6 * error
    assert abs(noise_found.mean()) < 6 * promise.sd / math.sqrt(n)
    assert not (promise.sd**2 / 2 - 6 * error < variance < promise.sd**2 / 2 + 6 * error), (
        "half the noise would be told apart"
    )
    pairs = np.corrcoef(np.array(found)[:, 0], np.array(found)[:, 1])[0, 1]
    assert abs(pairs) < 0.8, "each count has noise of its own"


def test_noise_is_drawn_anew_and_not_clamped():
    found = accounting(eps=0.5)
    drawn = [data_pert(np.zeros(50, np.int64), found.noise(2, SeededRandomness(b"%d" % i)))
             for i in range(2)]  # fmt: skip
    assert not np.array_equal(*drawn) and min(map(np.min, drawn)) < 0


def sums():
    path = Path(__file__).parents[2] / "benchmarks" / "noise_of_sums.py"
    spec = importlib.util.spec_from_file_location("noise_of_sums", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_noise_of_a_sum_at_one_draw_has_the_law_of_the_parties():
    draw, n, count = sums().noise_of_sum, 40, 40_000
    generator = np.random.default_rng(11)
    diluted = DilutedGeometric(eps=0.8, delta=0.05, gamma=1.0, n=n)
    none, law = diluted_law(0.8, diluted.beta, n)
    law = (1 - none) * law
    law[len(law) // 2] += none
    at_once = draw(diluted, n, count, generator)
    assert fit(at_once, law) > 1e-3
    share = PolyaShare(eps=0.8, n=n, randomness=SeededRandomness())
    one_copy = polya_law(0.8, 1.0)
    assert fit(draw(share, n, count, generator), one_copy) > 1e-3
    assert fit(at_once, one_copy) < 1e-9, "the test tells them apart"

    parties_draw = sum(share(4000) for _ in range(n))
    edges = np.clip([parties_draw, draw(share, n, 4000, generator)], -4, 4) + 4
    table = np.array([np.bincount(row, minlength=9) for row in edges])
    expected = np.tile(table.sum(axis=0) / 2, (2, 1))
    assert chisquare(table.ravel(), expected.ravel(), ddof=9).pvalue > 1e-3


def test_thresholds_are_as_high_as_drop_outs_leave():
    find = aggregations._neighbourhood
    assert find(10, 0, 0, 100) == (9, 10), "with no drop-outs agreed, all must be left"
    assert find(10, 1, 1, 100) == (9, 9)
    degree, threshold = find(1000, 0, 0, 100)
    assert threshold == degree + 1
    degree, threshold = find(300, 15, 15, 100)
    found = aggregations.Neighbourhood(degree, threshold)
    higher = found._replace(threshold=threshold + 1)
    assert aggregations.failure_probability(300, found, 15) <= 2**-20
    assert aggregations.failure_probability(300, higher, 15) > 2**-20
    assert aggregations.compromise_probability(300, found, 15) <= 2**-40


def test_so_many_colluders_cannot_part_the_ring():
    for dishonest, dropouts in ((0.0, 0.0), (0.1, 0.1), (0.3, 0.2)):
        terms = Terms(SCHEMA, 1000, 5, dishonest=dishonest, dropouts=dropouts)
        names = [f"p{i}" for i in range(200)]
        blocks, least = Members(terms, names, "additive").blocks, aggregations.least_block(terms)
        assert len(blocks) == 1 or min(map(len, blocks)) >= least
        assert terms.colluding(1000) + terms.absent(1000) < 2 * least


def test_the_example(capsys):
    path = Path(__file__).parents[2] / "examples" / "hdpnb.py"
    spec = importlib.util.spec_from_file_location("example_hdpnb", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.learn().spent.releases == 1
    assert "(1, 5.4e-20)-differentially private" in capsys.readouterr().out
