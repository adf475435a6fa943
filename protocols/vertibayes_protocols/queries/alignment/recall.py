"""The first messages of an alignment: who has kept it, and the keys of this run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.randomness import KEY_BYTES, KeyPair
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange
from vertibayes_protocols.roles import SiteRole


@dataclass(frozen=True, slots=True)
class Recall(Message):
    """Whether the sender has kept the alignment of the study, and its part of the sites' key.

    The part is empty in messages to the analyst and the dealer. At level 2 sites and dealer also
    send the public half of an ephemeral key.
    """

    kind: ClassVar[str] = "recall"
    kept: bool
    part: bytes = field(repr=False)
    key: bytes = b""


def recalled(
    site: SiteRole, parties: Sequence[Party], dealer: Party, kept: bool, fresh: KeyPair | None
) -> Program[dict[Party, Recall]]:
    """Exchange who has kept the alignment, parts of the sites' key, and ephemeral keys.

    Parameters
    ----------
    site, parties, dealer : SiteRole, sequence of Party, Party
        The site, whom the query asks, and the dealer of the study.
    kept : bool
        Whether the site has kept the alignment.
    fresh : KeyPair, optional
        At level 2 the site's ephemeral key.
    """
    key = b"" if fresh is None else fresh.public
    ours = Recall(kept, site.randomness.bytes(KEY_BYTES), key)
    others = [peer for peer in parties if peer not in (site.party, dealer)]
    outbox = {**dict.fromkeys(others, ours), site.analyst: Recall(kept, b"")}
    if fresh is not None:
        outbox[dealer] = Recall(kept, b"", key)
    peers = [peer for peer in parties if peer != site.party]
    theirs = yield from exchange(outbox, dict.fromkeys(peers, Expect(Recall, 2 * KEY_BYTES)))
    for peer, recall in theirs.items():
        part = 0 if peer == dealer else KEY_BYTES
        if (len(recall.part), len(recall.key)) != (part, len(key)):
            raise MalformedMessageError(peer, "its part of the sites' key has a wrong length")
    return {**theirs, site.party: ours}
