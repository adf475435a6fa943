"""A site, and how it commits: its columns under their masks to the others, theirs to it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mpc.errors import DealReusedError
from mpc.masked_tables.basis import indicators
from mpc.masked_tables.commitments import Commitments, Selection, committed_rows
from mpc.masked_tables.masks import Masks
from mpc.masked_tables.messages import LABEL_BYTES, Masked, labelled_elements
from mpc.randomness import Stream
from mpc.ring import Elements
from mpc.rounds import Expect, Message, Party, Program, Round


@dataclass
class Holder:
    """A site: its columns, its keys, and the masked columns of all.

    Parameters
    ----------
    party : Party
    commitments : Commitments
    codes : mapping of int to ndarray of shape (n,)
        The codes of each operand that it holds; 0 also where it does not hold the record.
    dealer_key : Stream
        Shared with the dealer.
    peer_keys : mapping of Party to Stream
        Shared with each other site.
    masked : mutable mapping of int to ndarray of shape (columns of the study, rows), optional
        Where the masked columns of each block are kept; in memory by default.
    last : int, default=-1
        The number of the last query counted.
    """

    party: Party
    commitments: Commitments
    codes: Mapping[int, NDArray[np.unsignedinteger]] = field(repr=False)
    dealer_key: Stream = field(repr=False)
    peer_keys: Mapping[Party, Stream] = field(repr=False)
    masked: MutableMapping[int, Elements] = field(default_factory=dict, repr=False)
    last: int = -1

    def begin(self, number: int) -> None:
        """Begin a query; see `Plan`.

        Raises
        ------
        DealReusedError
            If a query of this number, or a later one, was begun before.
        """
        if number <= self.last:
            raise DealReusedError(f"query {number} comes after {self.last}: numbers must increase")
        self.last = number

    def clear(self, place: int, block: int) -> Elements:
        """Return the indicators of an own column in a committed block: shape (width, rows)."""
        rows = slice(block * self.commitments.block_rows, (block + 1) * self.commitments.block_rows)
        width = self.commitments.operands[place].width
        return indicators(self.codes[place][rows], width, self.commitments.ring)


def commit(site: Holder) -> Program[None]:
    """Send one's columns under their masks to the other sites, and keep theirs: a round a block.

    Raises
    ------
    MalformedMessageError
        If a site's columns have a wrong shape.
    """
    all_rows = Selection(site.commitments)
    masks = Masks(site.commitments, site.dealer_key, all_rows)
    own = site.commitments.held_by(site.party)
    others = [peer for peer in site.commitments.sites if peer != site.party]
    for block in all_rows.blocks:
        columns = [site.clear(i, block) + masks.committed(i, block) for i in own]
        ours = site.commitments.ring.reduce(np.concatenate(columns))
        expect = {peer: Expect(Masked, _cells(site.commitments, peer, block)) for peer in others}
        message = Masked(ours, site.commitments.context)
        inbox = yield Round(dict.fromkeys(others, message), expect)
        site.masked[block] = _sum_of_holders(site, block, {site.party: ours}, inbox)


def _cells(commitments: Commitments, peer: Party, block: int) -> int:
    width = sum(commitments.operands[i].width for i in commitments.held_by(peer))
    return width * committed_rows(commitments, block) + LABEL_BYTES


def _sum_of_holders(
    site: Holder, block: int, ours: Mapping[Party, Elements], inbox: Mapping[Party, Message]
) -> Elements:
    """Put all sites' columns in the study's order; those of several holders are added up."""
    commitments, rows = site.commitments, committed_rows(site.commitments, block)
    masked = np.zeros((int(commitments.offsets[-1]), rows), commitments.ring.dtype)
    for peer in commitments.sites:
        held = commitments.held_by(peer)
        theirs = ours.get(peer)
        if theirs is None:
            shape = (sum(commitments.operands[i].width for i in held), rows)
            theirs = labelled_elements(
                inbox[peer], peer, commitments.ring, shape, commitments.context
            )
        at = 0
        for i in held:
            width = commitments.operands[i].width
            masked[commitments.columns(i)] += theirs[at : at + width]
            at += width
    return commitments.ring.reduce(masked)
