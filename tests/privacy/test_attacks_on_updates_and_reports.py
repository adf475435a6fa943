"""Analysts and carriers of local updates, gossip and reports who want more than the noise shows.

Each attack is run against an unsafe variant first, and reads the data there.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import noisy, received
from tests.randomness import SeededRandomness
from tests.vertibayes.hdpnb_worlds import SCHEMA, federation_of, parties
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.oracles import SummationHistogram
from vertibayes_mpc.oracles.summation import GRID
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.budget import Cost, rho_of
from vertibayes_protocols.engine import answer, consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.gossip import Estimate, GossipNodes
from vertibayes_protocols.local_reports import Client, ReportPlan
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Publish, Report, Sums, Updates
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.statistics import noisy_statistics
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.queries.sums.updates import Delivered
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric, parts
from vertibayes_protocols.storage.memory import SiteMemory

DRAWS = 500
BUDGET = Policy(most_epsilon=1.0, most_delta=1e-5)
Z = Numeric("z", -2.0, 2.0)
MIXED = Schema(SCHEMA.target, {"a": SCHEMA.features["a"], "z": Z})


def program(site, query):
    return answer(site, consider(site, query))


def refusal(site, query):
    """Return why a site refuses; nothing if it agrees."""
    try:
        consider(site, query)
    except QueryRefusedError as refused:
        return refused.reason
    return ""


def updates(world, eps=0.1, iterations=1, noise="laplace", **changes):
    privacy = Privacy(eps=eps, noise=noise, delta=1e-7)
    query = Updates.of(world.analyst, Terms(SCHEMA, 20, 50, privacy), world.roles, iterations)
    return replace(query, **changes)


def sums(world, eps=0.1):
    terms = Terms(SCHEMA, 20, 50, Privacy(eps=eps))
    return Sums.of(world.analyst, terms, Members(terms, world.roles, "masked"))


def report(world, eps=0.1, schema=SCHEMA, **given):
    plan = ReportPlan(schema=schema, eps=eps, **given)
    return Report(tuple(sorted(world.roles)), plan, 50)


def publish(counts, eps=0.1):
    """Return a query to one site that holds records; the other site need not exist."""
    split = Split.of(SCHEMA, {"p00": ("a",), "somebody": ("b",)}, tuple(counts))
    return Publish.of(split, RecordNoise(eps))


# ---- the budget ----------------------------------------------------------------------------------


def release(site, query):
    """Have a site run a query up to its first message, which is what it releases."""
    return next(program(site, query)).outbox[site.analyst]


def redrawn(site, query, charge):
    """Return the mean of the releases that a site makes until it refuses."""
    seen = []
    while len(seen) < DRAWS:
        if not charge:
            site.memory.spent = Cost()
            site.memory._sums.clear()
        try:
            seen.append(release(site, query(len(seen))).values)
        except QueryRefusedError:
            break
    return np.mean(seen, axis=0), len(seen)


def test_noise_that_is_drawn_again_is_paid_again():
    world = federation_of(parties(2, 30), policy=BUDGET)
    site, exact = world.roles["p00"], SCHEMA.measure(world.roles["p00"].batches[0])
    first = updates(world, eps=0.5)
    mean, asked = redrawn(site, lambda _: first, charge=False)
    assert asked == DRAWS
    # The mean has a standard deviation of .38 in each of 21 counts: 2.5 is beyond 6 of them.
    assert np.abs(mean - exact).max() < 2.5, "a site that forgets shows its counts"
    site.memory = SiteMemory(randomness=SeededRandomness())
    _, asked = redrawn(site, lambda place: replace(first, number=first.number + place), True)
    assert asked == 2
    assert site.memory.spent.eps_at(1e-5) == pytest.approx(1.0)


def test_a_query_that_is_sent_again_is_refused_before_noise_is_drawn():
    world = federation_of(parties(2, 30), policy=BUDGET)
    site, query = world.roles["p00"], updates(world)
    release(site, query)
    assert "does not come after" in refusal(site, query)
    assert site.memory.spent.eps == pytest.approx(0.1)


def released(world, site, draw, restart):
    """Ask a site at random; return what left, added up beside the site, and how often."""
    left, runs = Cost(), 0
    for _ in range(70):
        query, cost = any_query(world, float(draw.choice([0.001, 0.03, 0.2])), draw.integers(5))
        if not refusal(site, query) and draw.random() < 0.8:  # otherwise others refuse
            running = program(site, query)
            next(running)
            left, runs = left.plus(cost), runs + 1
            if draw.random() < 0.5:
                running.close()  # the analyst is gone
        if draw.random() < 0.3:
            site.memory.close()
            site.memory = restart()
    return left, runs


@pytest.mark.parametrize("seed", range(6))
def test_no_sequence_of_queries_failures_and_restarts_overspends(tmp_path, seed):
    draw = np.random.default_rng(seed)
    world = federation_of(parties(2, 30), policy=BUDGET)
    site, path = world.roles["p00"], tmp_path / "memory"
    forgetful, _ = released(world, site, draw, SiteMemory)
    assert forgetful.eps_at(1e-5) > 1.2, "without a file"
    site.memory = SiteMemory(path)
    left, runs = released(world, site, draw, lambda: SiteMemory(path))
    site.memory.close()
    with closing(SiteMemory(path)) as memory:
        pairs = zip(memory.spent, left, strict=True)
        assert all(noted >= gone * (1 - 1e-9) for noted, gone in pairs)
        site.memory = memory
        assert "of most_epsilon" in refusal(site, updates(world, eps=0.9))
    assert runs > 5 and left.eps_at(1e-5) <= 1 + 1e-9


def any_query(world, eps, kind):
    """Return a query, and what it costs at least."""
    if kind == 0:
        return updates(world, eps), Cost.of(eps)
    if kind == 1:
        gossip = updates(world, eps, 3, "gaussian")
        return gossip, gossip.promise.cost
    if kind == 2:
        return report(world, eps), Cost.of(eps)
    if kind == 3:
        return publish((9, 9, 9), eps), Cost.of(eps / 2)  # one of two features
    return sums(world, eps), Cost.of(eps)


GRID_OF_LOSSES = 1e-3


def losses(release):
    """Return the privacy loss of a release and its law: of Laplace noise, or of Gaussian noise."""
    eps, rho = release
    if rho is None:
        return {eps: math.exp(eps) / (math.exp(eps) + 1), -eps: 1 / (math.exp(eps) + 1)}
    sd = math.sqrt(2 * rho)
    points = np.arange(-9 * sd, 9 * sd, GRID_OF_LOSSES)
    law = np.exp(-((points - rho) ** 2) / (4 * rho))
    return dict(zip(points.tolist(), (law / law.sum()).tolist(), strict=True))


def delta_at(eps, releases):
    """Return the delta that releases have together at an eps, by the law of their total loss."""
    total, least = np.ones(1), 0
    for release in releases:
        places = {round(loss / GRID_OF_LOSSES): p for loss, p in losses(release).items()}
        law = np.zeros(max(places) - min(places) + 1)
        law[np.array([*places]) - min(places)] = [*places.values()]
        total, least = np.convolve(total, law), least + min(places)
    loss = (np.arange(len(total)) + least) * GRID_OF_LOSSES
    above = loss > eps
    return float(total[above] @ -np.expm1(eps - loss[above]))


@pytest.mark.parametrize(
    ("laplace", "gaussian"),
    [((10, 0.1), (0, 0.1)), ((60, 0.05), (0, 0.1)), ((0, 0.1), (5, 0.3)), ((20, 0.05), (5, 0.2))],
)
def test_what_releases_cost_together_is_at_least_their_exact_privacy_loss(laplace, gaussian):
    rho = rho_of(gaussian[1], 1e-7)
    cost = Cost.of(laplace[1]).times(laplace[0])
    cost = cost.plus(Cost(gaussian[1], 1e-7, rho).times(gaussian[0]))
    releases = [(laplace[1], None)] * laplace[0] + [(0.0, rho)] * gaussian[0]
    proved = cost.eps_at(1e-5)
    assert delta_at(proved, releases) < 1e-5
    assert delta_at(proved / 2, releases) > 1e-5, "half of it does not cover them"


@pytest.mark.parametrize("part", ["eps", "delta", "rho", "slack"])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_memory_that_says_less_than_nothing_was_spent_is_refused(tmp_path, part, value):
    with closing(SiteMemory(tmp_path / "memory")) as memory:
        memory.apply(noisy(Cost()._replace(**{part: value})))
    with pytest.raises(ValueError, match="negative or not a number"):
        SiteMemory(tmp_path / "memory")


# ---- gossip --------------------------------------------------------------------------------------


def steps_of(site, query, forged):
    """Run a site's program under forged deliveries; return the estimates that it sends."""
    running, sent = program(site, query), []
    outbox = next(running).outbox
    for delivered in forged:
        sent.append(outbox["analyst"])
        outbox = running.send({"analyst": delivered}).outbox
    return [*sent, outbox["analyst"]]


def forged_deliveries(draw, rounds, counts):
    for _ in range(rounds):
        count = int(draw.integers(3))
        weights = draw.integers(1, 9, count)
        yield Delivered(weights.astype(np.int64), np.rint(draw.normal(0, 40, (count, counts))))


def test_forged_estimates_bring_out_nothing_beside_the_first_step():
    """The whole view follows from the first step, so that it is as private as one release."""
    world = federation_of(parties(3, 30))
    query, draw = updates(world, eps=1.0, iterations=40), np.random.default_rng(5)
    forged = list(forged_deliveries(draw, 39, 21))
    sent = steps_of(world.roles["p00"], query, forged)
    node = GossipNodes(sent[0].values[None])
    for step, delivered in zip(sent[1:], forged, strict=True):
        arrived = Estimate(delivered.weights, delivered.values)
        node.receive(np.zeros(len(arrived.weights), np.intp), arrived)
        assert np.array_equal(step.values, node.estimate().values[0])
    assert all(step.to in ("p01", "p02") for step in sent)


def test_a_node_that_drew_noise_in_each_iteration_would_show_its_counts():
    """Without peers each step of such a node is its counts with other noise; ours is the same."""
    world = federation_of(parties(3, 30))
    site = world.roles["p00"]
    query = updates(world, eps=1.0, iterations=1001)
    terms = query.terms
    exact = SCHEMA.measure(site.batches[0])
    unsafe = np.mean([noisy_statistics(site, terms, 1) for _ in range(1001)], axis=0)
    # sd .13: eps = 1 over three tables, a thousand draws.
    assert np.abs(unsafe - exact).max() < 1.2
    nothing = Delivered(np.zeros(0, np.int64), np.zeros((0, 21)))
    sent = steps_of(site, query, [nothing] * 1000)
    assert len({step.values.tobytes() for step in sent}) == 1


# ---- reports -------------------------------------------------------------------------------------


def people(count, seed=0):
    draw = np.random.default_rng(seed)
    codes = {n: draw.integers(0, len(v.states), count) for n, v in MIXED.variables.items()}
    return LocalData(MIXED.variables, codes, {"z": Z}, {"z": draw.uniform(-3, 3, count)})


@pytest.mark.parametrize("oracle", ["de", "sue", "oue", "she", "the", "ss"])
def test_how_many_answer_a_question_does_not_depend_on_their_values(oracle):
    plan = ReportPlan(schema=MIXED, eps=1.0, oracle=oracle)
    rows = np.zeros(300, np.intp)
    worlds = people(300), people(300, 1), people(300).rows(rows)
    numbers = {
        tuple(
            (name, len(rows))
            for name, rows in Client(plan, SeededRandomness()).perturb_all(data).answers.items()
        )
        for data in worlds
    }
    assert len(numbers) == 1
    again = Client(plan, SeededRandomness(b"other")).perturb_all(worlds[0]).answers
    assert tuple((name, len(rows)) for name, rows in again.items()) not in numbers


def clipped_before(oracle, values):
    """Perturb as it was done: the noise is clipped, and then the value is added."""
    cells = np.clip(oracle.noise(values.size * oracle.domain), -oracle.largest, oracle.largest)
    cells = cells.reshape(values.size, oracle.domain)
    cells[np.arange(values.size), values] += GRID
    return cells


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_noise_shows_no_value(sign):
    """Rare as it is (2^-100), it decides whether a report has delta = 0."""
    oracle = SummationHistogram(eps=1.0, domain=3)
    limit = oracle.largest
    oracle.__dict__["noise"] = lambda count: np.full(count, sign * 2 * limit)
    unsafe = {clipped_before(oracle, np.array([v])).tobytes() for v in range(3)}
    assert len(unsafe) == 3, "each value is read"
    ours = {oracle.perturb(np.array([v])).tobytes() for v in range(3)}
    assert len(ours) == 1
    assert oracle.support(np.frombuffer(*ours, np.int64).reshape(1, 3)).any()


def test_answers_to_all_questions_have_the_same_form_whatever_the_values():
    world = federation_of({"p00": people(40), "p01": people(40, 1)})
    query = report(world, schema=MIXED, reports="all")
    forms = {
        (sent.questions, *((rows.shape, rows.dtype) for rows in sent.answers))
        for sent in (release(site, query) for site in world.roles.values())
    }
    assert len(forms) == 1


@pytest.mark.parametrize("reports", ["one", "all"])
@pytest.mark.parametrize("how", [{}, {"bins": 4}, {"approach": 1}, {"approach": 2}])
def test_a_site_of_nobody_answers_like_others_and_is_charged(how, reports):
    world = federation_of({"p00": people(0), "p01": people(1)})
    for count, site in enumerate(world.roles.values()):
        sent = release(site, report(world, schema=MIXED, reports=reports, **how))
        assert sum(map(len, sent.answers)) == count * (1 if reports == "one" else len(sent.answers))
        assert site.memory.spent.eps == pytest.approx(0.1)


@pytest.mark.parametrize("how", [{}, {"bins": 4}, {"approach": 1}, {"approach": 2}])
def test_a_missing_number_of_a_person_is_not_learned_from_a_refusal(how):
    complete = people(40)
    values = complete.numbers["z"].copy()
    values[7] = np.nan
    world = federation_of({"p00": complete, "p01": replace(complete, numbers={"z": values})})
    query = report(world, schema=MIXED, **how)
    site = world.roles["p01"]
    with pytest.raises(ValueError, match="a number is missing"):
        Client(query.asked).perturb_all(site.batches[0])
    assert {refusal(site, query) for site in world.roles.values()} == {""}
    assert sum(map(len, release(site, query).answers)) == 40


def test_bins_without_end_are_refused_before_they_are_named():
    """A plan is read before a site may refuse it: neither makes bins without end."""
    world = federation_of({"p00": people(40), "p01": people(40)})
    query = report(world, schema=MIXED, bins=4)
    object.__setattr__(query.asked, "bins", 2**40)
    with pytest.raises(MalformedMessageError, match=f"bins must be from 2 to 65000, got {2**40}"):
        received(query)


def test_bins_of_a_plan_that_is_read_are_not_named_before_the_query_is_considered(monkeypatch):
    world = federation_of({"p00": people(40), "p01": people(40)})
    query = report(world, schema=MIXED, bins=65_000)

    def binned_schema(*_, **__):
        raise AssertionError("bins are named")

    monkeypatch.setattr("vertibayes_protocols.local_reports.plan.binned_schema", binned_schema)
    assert received(query) == query
    with pytest.raises(AssertionError, match="bins are named"):
        consider(world.roles["p00"], query)


# ---- what refusals tell --------------------------------------------------------------------------


def guessed(site, records):
    """Return the counts of classes that a site confirms, of those with so many records."""
    every = [(i, j, records - i - j) for i in range(1, records) for j in range(records - i)]
    return [
        counts
        for counts in every
        if "other counts of classes" not in refusal(site, publish(counts, eps=2.0))
    ]


def test_a_site_with_a_budget_does_not_confirm_its_counts_of_classes():
    """Noise protects them in updates and sums; tables of columns take them for public."""
    world = federation_of(parties(2, 12), policy=replace(BUDGET, free_tables=True))
    site = world.roles["p00"]
    exact = tuple(np.bincount(site.batches[0].codes["y"], minlength=3).tolist())
    assert guessed(site, 12) == [exact], "read, and the budget refused all the same"
    assert site.memory.spent == Cost()
    site.policy = BUDGET
    assert len(guessed(site, 12)) == 66, "each guess has the same answer"
    tables = release(site, publish((11, 1, 0))).counts.reshape(4, 3)
    assert (tables <= (11, 1, 0)).all(), "what is published stays within what the analyst wrote"


# ---- sensitivities -------------------------------------------------------------------------------

RECORDS = [
    {"y": y, "a": a, "z": z}
    for y in (0, 2, 3)  # 3 and 4: missing
    for a in (0, 4)
    for z in (np.nan, -1e308, -2.0, -1e-300, 0.0, 1e-300, 2.0, np.nextafter(2.0, 3), 1e308)
]


@pytest.mark.parametrize(
    "bounds", [(-2.0, 2.0), (0.0, 1e-300), (1e15, 1e15 + 0.5), (-1e-3, 1.7e308), (0.1, 0.3)]
)
def test_no_record_changes_a_part_by_more_than_its_noise_assumes(bounds):
    schema = replace(MIXED, features={**MIXED.features, "z": Numeric("z", *bounds)}, centred=True)
    declared = [part for s in schema.statistics for part in parts(s, schema.variables)]
    ends = np.cumsum([part.cells for part in declared])[:-1]
    reached = np.zeros(len(declared), np.int64)
    for record in RECORDS:
        codes = {name: np.array([record[name]]) for name in ("y", "a")}
        numbers = {"z": np.array([record["z"]])}
        data = LocalData(schema.variables, codes, schema.numerics, numbers)
        changes = [np.abs(change).sum() for change in np.split(schema.measure(data), ends)]
        assert all(c <= part.Delta for c, part in zip(changes, declared, strict=True)), record
        reached = np.maximum(reached, changes)
    assert reached.tolist() == [part.Delta for part in declared], "and it cannot be smaller"
