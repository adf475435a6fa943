"""Twelve hospitals add up case counts, two drop out, and the aggregator sees only the sum.

python examples/masked_sum.py
"""

from __future__ import annotations

import numpy as np

from vertibayes_mpc.masked_sum import (
    Member,
    Sum,
    SumPlan,
    collect,
    contribute,
    smallest_neighbourhood,
)
from vertibayes_mpc.masked_sum.messages import MaskedVector, Shared
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.scheduler import ByHand, Scheduler, Sent
from vertibayes_mpc.signing import SigningKey

CASES = np.random.default_rng(1).poisson(20, (12, 8))  # 12 hospitals, 8 diagnoses


class TwoDropOut(ByHand):
    """hospital-3 drops out after its sealed shares, hospital-7 after its masked vector."""

    scheduler: Scheduler

    def pack(self, sent: Sent) -> Sent:
        """Deliver a message, and drop its sender if this is the sender's last message."""
        last = {"hospital-3": Shared, "hospital-7": MaskedVector}.get(sent.sender)
        if type(sent.message) is last:
            self.scheduler.drop(sent.sender)
        return super().pack(sent)


def add_up() -> Sum:
    """Run the sum with all parties in this process."""
    randomness = SystemRandomness()
    hospitals = [f"hospital-{i}" for i in range(12)]
    members = {name: Member(name, SigningKey.generate(randomness)) for name in hospitals}
    keys = {name: member.signing.public for name, member in members.items()}
    neighbourhood = smallest_neighbourhood(parties=12, corrupt=1, dropped=3)
    plan = SumPlan(b"cases, week 12", keys, 8, 1000, neighbourhood)

    carrier = TwoDropOut()
    carrier.scheduler = scheduler = Scheduler(carrier)
    scheduler.start("aggregator", collect(plan))
    for name, counts in zip(hospitals, CASES, strict=True):
        program = contribute(members[name], plan, counts, "aggregator", randomness)
        scheduler.start(name, program)
    total: Sum = scheduler.finish("aggregator")
    print(
        f"{len(total.parties)} of 12 hospitals, threshold {neighbourhood.threshold}:", total.values
    )
    return total


if __name__ == "__main__":
    add_up()
