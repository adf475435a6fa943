"""Sites publish their tables, noisy or not, to an aggregator: where the model itself is wanted.

    P_k -> aggregator    counts of its features by class, feature after feature, flat

Security: none; what is published is the site's own noisy release. Leakage: the tables, to the
aggregator. Cost: 1 round, 8 bytes a cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mpc.errors import MalformedMessageError
from mpc.rounds import Expect, Message, Party, Program, Round
from vertibayes.naive_bayes.scores import Split, Table, Tables


@dataclass(frozen=True, slots=True)
class PublishedTables(Message):
    """One site's tables, flat: int64 of shape (cells,)."""

    kind: ClassVar[str] = "published tables"
    counts: NDArray[np.int64] = field(repr=False)


def publish_tables(split: Split, site: Party, tables: Tables, aggregator: Party) -> Program[None]:
    """Send a site's tables to the aggregator: its program."""
    flat = np.concatenate([tables[name].reshape(-1) for name in split.holders[site]])
    yield Round({aggregator: PublishedTables(flat)}, {})


def collect_tables(split: Split) -> Program[dict[str, Table]]:
    """Collect all sites' tables: the aggregator's program.

    Raises
    ------
    MalformedMessageError
        If they are of another shape, or a count is negative or beyond its class: it names the site.
    """
    cells = {
        site: sum(_cells(split, name) for name in held) for site, held in split.holders.items()
    }
    inbox = yield Round({}, {site: Expect(PublishedTables, n + 64) for site, n in cells.items()})
    found: dict[str, Table] = {}
    for site, held in split.holders.items():
        message = inbox[site]
        assert isinstance(message, PublishedTables)  # the transport has checked the kind
        if message.counts.shape != (cells[site],) or message.counts.dtype != np.int64:
            raise MalformedMessageError(site, f"tables of {cells[site]} counts are wanted")
        at = 0
        for name in held:
            table = message.counts[at : at + _cells(split, name)]
            found[name] = table.reshape(-1, len(split.class_counts))
            at += _cells(split, name)
            if (found[name] < 0).any() or (found[name] > np.array(split.class_counts)).any():
                raise MalformedMessageError(site, f"a count of {name} beyond that of its class")
    return found


def _cells(split: Split, name: str) -> int:
    return len(split.schema.variables[name].states) * len(split.class_counts)
