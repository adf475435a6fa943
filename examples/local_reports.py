"""Four thousand people report on themselves, each with noise of their own, and a model is learned.

python examples/local_reports.py
"""

from __future__ import annotations

import numpy as np

from vertibayes.naive_bayes.local import learn_reports
from vertibayes_protocols.local_reports import Aggregator, Client, ReportPlan
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

SCHEMA = Schema(
    Variable("ill", ("no", "yes")),
    {"fever": Variable("fever", ("no", "yes")), "age": Numeric("age", 0, 100)},
)
# All agree on this beforehand. Ages are cut into four bins, whose edges follow from 0 and 100.
PLAN = ReportPlan(schema=SCHEMA, eps=2.0, bins=4)


def people(count: int, seed: int) -> LocalData:
    """Draw people: ill people have fever more often, and are older."""
    generator = np.random.default_rng(seed)
    ill = generator.integers(0, 2, count)
    fever = (generator.random(count) < 0.2 + 0.5 * ill).astype(int)
    age = {"age": generator.normal(35 + 25 * ill, 15)}
    return LocalData(SCHEMA.variables, {"ill": ill, "fever": fever}, SCHEMA.numerics, age)


def learn() -> float:
    """Collect the report of one person, and of a site's people; learn, and return the accuracy."""
    print(PLAN.promise.sentence)
    aggregator = Aggregator(PLAN)
    aggregator.update(Client(PLAN).perturb({"ill": "yes", "fever": "no", "age": 71}))
    aggregator.update(Client(PLAN).perturb_all(people(4000, seed=1)))
    estimate = aggregator.estimates()["fever, ill"]
    low, high = estimate.interval(0.95)
    print(
        f"with fever and ill: {estimate.values[1, 1]:.0f}, from {low[1, 1]:.0f} to {high[1, 1]:.0f}"
    )
    accuracy = learn_reports(aggregator).score(PLAN.prepare(people(2000, seed=2)))
    print(f"{aggregator.people} people reported; accuracy on others: {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    learn()
