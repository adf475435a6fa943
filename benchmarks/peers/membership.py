"""How many parties' keys a join changes: interleaved groups beside one set-up for all."""

from __future__ import annotations

from statistics import median

from side_by_side import seconds_of

from vertibayes_mpc.membership import Groups
from vertibayes_mpc.randomness import SystemRandomness

JOINS = 60
OURS = (
    "announcer of groups tells true; coalitions below 40 parties where rolls are true, below a "
    "third of a block where not"
)
PEERS = "dealer forgets keys; any coalition"


def keys_per_join(parties: int) -> list[int]:
    """Return the number of parties whose keys each of some joins changes, a leave after each."""
    names = [f"p{i}" for i in range(parties + JOINS)]
    groups, found = Groups(names[:parties], SystemRandomness()), []
    for leaver, newcomer in zip(names[:JOINS], names[parties:], strict=True):
        found.append(len(groups.join(newcomer)))
        groups.leave(leaver)
    return found


def one_row(parties: int) -> list[str]:
    """Count keys, and time the announcer's part of a join."""
    found = keys_per_join(parties)
    groups = Groups((f"p{i}" for i in range(parties)), SystemRandomness())
    names = iter(range(10**6))
    seconds = seconds_of(lambda: groups.join(f"new{next(names)}"), 9)
    typical, most = median(found), max(found)
    return [
        f"membership: keys changed by a join, {parties} parties",
        f"{typical:.0f} (most {most}; {seconds * 1e3:.1f} ms to place)",
        "one zero-sum set-up (Huai et al. 2015)",
        str(parties + 1),
        f"{(parties + 1) / typical:.1f}",
        OURS,
        PEERS,
    ]


def rows() -> list[list[str]]:
    """Measure for 10 to 10,000 parties."""
    return [one_row(parties) for parties in (10, 100, 1000, 10_000)]
