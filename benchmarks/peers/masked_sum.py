"""Masked sums beside Flower's SecAgg+ (flwr): masks, shares, and a sum of 1,000 parties.

Flower folds each seed to 32 bits and draws from a Mersenne twister: who knows some values of a
vector finds its mask's seed by trying 2^32. Ours are AES-256-CTR streams under all 256 bits.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from side_by_side import seconds_of

from vertibayes_mpc.masked_sum import (
    Member,
    Neighbourhood,
    SumPlan,
    collect,
    contribute,
    smallest_neighbourhood,
)
from vertibayes_mpc.masked_sum.seeds import own_mask, pair_masks
from vertibayes_mpc.randomness import StreamKey, SystemRandomness
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.shamir import split
from vertibayes_mpc.signing import SigningKey

OURS = "server may lie; fresh 256-bit seeds; lists signed"
FLOWER = "server honest-but-curious; masks of 32-bit seeds"
MODULUS = 2**32


def plan_of(parties: int, length: int, neighbourhood: Neighbourhood) -> tuple[SumPlan, dict]:
    """Return a plan and its members."""
    randomness = SystemRandomness()
    names = [f"party-{i:04}" for i in range(parties)]
    members = {name: Member(name, SigningKey.generate(randomness)) for name in names}
    keys = {name: member.signing.public for name, member in members.items()}
    return SumPlan(randomness.bytes(16), keys, length, 1 << 20, neighbourhood), members


def client_masks(parties: int = 10, length: int = 1_000_000, times: int = 5) -> list[str]:
    """Time one client's masked vector, the keys agreed on."""
    plan, members = plan_of(parties, length, Neighbourhood(parties - 1, parties // 2 + 1))
    me, *others = members
    seeds = {name: SystemRandomness().bytes(32) for name in members}
    values = np.arange(length) % 1000

    def ours() -> object:
        masks = pair_masks(plan, me, {name: StreamKey(seeds[name]) for name in others})
        return plan.encode(values) + masks + own_mask(plan, StreamKey(seeds[me]))

    def theirs() -> object:
        """As `_collect_masked_vectors` of Flower's client does, vectors of one array."""
        found = [values]
        found = parameters_addition(found, pseudo_rand_gen(seeds[me], MODULUS, [(length,)]))
        for place, name in enumerate(others):
            mask = pseudo_rand_gen(seeds[name], MODULUS, [(length,)])
            found = (parameters_addition, parameters_subtraction)[place % 2](found, mask)
        return parameters_mod(found, MODULUS)

    setting = f"masked sum: a client's masks, {parties} parties x {length:,}"
    return row(setting, seconds_of(ours, times), seconds_of(theirs, times), "flwr SecAgg+ client")


def one_mask(length: int = 1_000_000, times: int = 9) -> list[str]:
    """Time one mask."""
    plan, _ = plan_of(2, length, Neighbourhood(1, 2))
    seed = SystemRandomness().bytes(32)
    ours = seconds_of(lambda: own_mask(plan, StreamKey(seed)), times)
    theirs = seconds_of(lambda: pseudo_rand_gen(seed, MODULUS, [(length,)]), times)
    return row(f"masked sum: one mask of {length:,}", ours, theirs, "flwr pseudo_rand_gen")


def shares(times: int = 9) -> list[list[str]]:
    """Time shares of a seed among 81, 62 of which give it back."""
    try:
        from flwr.common.secure_aggregation.crypto.shamir import create_shares
    except ImportError:  # pycryptodome is not there
        return []
    seed, randomness = SystemRandomness().bytes(32), SystemRandomness()
    number, places = int.from_bytes(seed, "big"), range(1, 82)
    ours = seconds_of(lambda: split(number, 62, places, randomness), times)
    theirs = seconds_of(lambda: create_shares(seed, 62, 81), times)
    return [row("Shamir: a 32-byte seed, 62 of 81", ours, theirs, "flwr create_shares")]


def whole_sum(parties: int = 1000, length: int = 10_000) -> list[str]:
    """Time a sum, all parties and the server in this process, once; Flower's masks of it alone."""
    neighbourhood = smallest_neighbourhood(parties, parties // 20, parties // 20)
    plan, members = plan_of(parties, length, neighbourhood)
    values, randomness = np.arange(length) % 1000, SystemRandomness()
    start = perf_counter()
    programs = {
        name: contribute(member, plan, values, "server", randomness)
        for name, member in members.items()
    }
    outputs, _ = run_all({"server": collect(plan)} | programs)
    ours = perf_counter() - start
    assert np.array_equal(outputs["server"].values, parties * values)
    seed, start = SystemRandomness().bytes(32), perf_counter()
    for _ in range(parties * (neighbourhood.degree + 1)):
        pseudo_rand_gen(seed, MODULUS, [(length,)])
    theirs = perf_counter() - start
    setting = (
        f"masked sum: {parties:,} parties x {length:,}, all rounds, one process; "
        f"k = {neighbourhood.degree}, t = {neighbourhood.threshold}"
    )
    return row(setting, ours, theirs, "flwr: its masks alone, no other step")


def row(setting: str, ours: float, theirs: float, peer: str) -> list[str]:
    """Return one row of the table."""
    times = [f"{s * 1e3:.2f} ms" if s < 1 else f"{s:.1f} s" for s in (ours, theirs)]
    return [setting, times[0], peer, times[1], f"{theirs / ours:.2f}", OURS, FLOWER]


def rows() -> list[list[str]]:
    """Return all rows: ratios above 1 are how many times as fast ours is."""
    return [one_mask(), client_masks(), *shares(), whole_sum()]
