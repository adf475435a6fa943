"""Parties join, leave and fail; the sums continue, and few keys change.

python examples/membership.py
"""

from __future__ import annotations

from typing import Any

from vertibayes_mpc.additive_scheme import NEVER, Parameters, draw_modulus
from vertibayes_mpc.membership import Aggregator, Estimates, Groups, Member, answer_roll, call_roll
from vertibayes_mpc.randomness import KeyPair, StreamKey, SystemRandomness
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.scheduler import run_all

RANDOMNESS = SystemRandomness()


def keys_per_join(parties: int) -> int:
    """Return the number of parties whose keys a join changes."""
    groups = Groups([f"p{i}" for i in range(parties)], RANDOMNESS)
    return len(groups.join("newcomer"))


def sum_without(absent: str) -> int:
    """Sum over six parties, one of which has dropped out, without another set-up."""
    parameters = Parameters(draw_modulus(), b"example", most=100, lowest=0, highest=1000)
    groups = Groups("abcdef", RANDOMNESS)
    groups.join("g")
    groups.leave("b")
    pairs = {party: KeyPair.generate(RANDOMNESS) for party in (*groups.parties, "aggregator")}

    def streams(own: Party) -> dict[Party, StreamKey]:
        return {p: pairs[own].agree(pairs[p].public, "sums") for p in pairs if p != own}

    programs: dict[Party, Program[Any]] = {
        "aggregator": call_roll(
            Aggregator(parameters, "aggregator", streams("aggregator")), [absent], 1, 1
        )
    }
    for party in sorted(set(groups.parties) - {absent}):
        near = groups.neighbourhood(party)
        member = Member(parameters, party, "aggregator", near, streams(party), last_time=NEVER)
        programs[party] = answer_roll(member, [100], 1)
    return int(run_all(programs)[0]["aggregator"][0])


if __name__ == "__main__":
    for count in (10, 100, 1000, 10_000):
        print(f"{count:6} parties: a join changes the keys of {keys_per_join(count)}")
    estimates = Estimates("abcdef")
    print(f"estimates {estimates.values}; when g joins, {estimates.join('g')} change")
    print(f"sum over a, c, d, f, g without e: {sum_without('e')}")
