"""Join a study that counts by Paillier's cryptosystem: each site sends its public key, no column.

    site -> sites      JoiningByKey: its part of the common seed, the modulus N of its key
    site -> sites      digests of these messages            (queries.opening.comparing)
    site -> analyst    CommittedKey: a mark of the study, the same at all sites, N, and digests of
                       the N of all sites, which must be those of what the analyst receives

There is no dealer. A site draws a key for each study that it joins, or has one from its owner
(`SiteRole.paillier`). Every receiver refuses a modulus that is too short or easy to factor
(`vertibayes_mpc.moduli`), and two moduli with a common factor: a table's owner that sends the third
site's modulus as its own would let that one read the records of the second. The messages are sealed
in the session (`vertibayes_protocols.seal`).

Security: as `vertibayes_mpc.paillier.counting`. Leakage: none. Cost: two rounds and one; 300 bytes
between two sites, and to the analyst, and 33 bytes per site to the analyst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import gcd
from typing import ClassVar, NoReturn

from vertibayes_mpc.errors import MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES
from vertibayes_mpc.paillier import PrivateKey, PublicKey
from vertibayes_mpc.randomness import KEY_BYTES, StreamKey, label
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.queries.opening.comparing import compare
from vertibayes_protocols.queries.opening.joined import Committed, commitments_of, mark_of
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.study import Joined, Study

MOST_BYTES = 384  # of a modulus: longer ones make the work of all parties many times as much
KEYS = "keys or parts of the common seed"


@dataclass(frozen=True, slots=True)
class JoiningByKey(Message):
    """A site's part of the common seed, and the modulus of its key, little-endian."""

    kind: ClassVar[str] = "joining by key"
    seed: bytes = field(repr=False)
    modulus: bytes


@dataclass(frozen=True, slots=True)
class CommittedKey(Committed):
    """A site has joined the study, has this key, and knows these of all sites, in their order."""

    kind: ClassVar[str] = "committed key"
    modulus: bytes
    digests: tuple[bytes, ...]


def check_own_key(site: SiteRole) -> None:
    """Refuse a key of the site's owner that the other parties would refuse."""
    if site.paillier is not None and site.paillier.public.plaintext_bytes > MOST_BYTES:
        raise ValueError(f"its key has more than {8 * MOST_BYTES} bits")


def join_by_keys(site: SiteRole, study: Study) -> Program[None]:
    """Exchange keys and parts of the common seed with the other sites; send the analyst both."""
    key = site.paillier or PrivateKey.generate()
    modulus = key.public.modulus.to_bytes(key.public.plaintext_bytes, "little")
    ours = JoiningByKey(site.memory.seed(study.id), modulus)
    others = [party for party in study.sites if party != site.party]
    expect = Expect(JoiningByKey, KEY_BYTES + MOST_BYTES)
    joinings = yield from exchange(dict.fromkeys(others, ours), dict.fromkeys(others, expect))
    for party, joining in joinings.items():
        if len(joining.seed) != KEY_BYTES:
            raise MalformedMessageError(party, "its part of the seed has a wrong length")
    digests = {p: label("joining by key", j.seed, j.modulus) for p, j in joinings.items()}
    yield from compare(site.party, KEYS, digests, study.sites, study.sites)
    joinings[site.party] = ours
    seed = label("common seed", *(joinings[party].seed for party in study.sites))
    commitments = commitments_of(study, _ids(study), seed)
    site.leave_study()
    mark = label("mark", commitments.study)
    moduli = {party: joinings[party].modulus for party in study.sites}
    site.joined = Joined(study, commitments, StreamKey(seed), mark, _keys(moduli), key)
    yield from send({site.analyst: CommittedKey(mark, modulus, _digests(moduli))})


def receive_keys(study: Study) -> Program[Joined]:
    """Join a study as the analyst, with the keys of its sites."""
    cells = KEY_BYTES + MOST_BYTES + (LABEL_BYTES + 1) * len(study.sites)
    received = yield from exchange({}, dict.fromkeys(study.sites, Expect(CommittedKey, cells)))
    mark = mark_of(received)
    moduli = {site: received[site].modulus for site in study.sites}
    keys, digests = _keys(moduli), _digests(moduli)
    for site, message in received.items():
        if len(message.digests) != len(digests):
            raise MalformedMessageError(site, "its digests have a wrong number")
        for other, ours, theirs in zip(study.sites, digests, message.digests, strict=True):
            if ours != theirs:
                _blame(other, site)
    return Joined(study, commitments_of(study, _ids(study), b""), None, mark, keys)


def _ids(study: Study) -> dict[str, list[bytes]]:
    """Name the columns: as none is committed, none needs an id that is used once."""
    return {name: [name.encode()] for name in study.variables}


def _blame(sender: Party, site: Party) -> NoReturn:
    """Blame who has sent the analyst another modulus than a site says, or that site."""
    reason = f"the modulus that {sender} sent to the analyst differs from what {site} says"
    if sender == site:
        raise MalformedMessageError(site, reason)
    raise UnknownFaultyPartyError(sorted((sender, site)), f"{reason}: one of them lies")


def _digests(moduli: Mapping[Party, bytes]) -> tuple[bytes, ...]:
    return tuple(label("modulus", modulus) for modulus in moduli.values())


def _keys(moduli: Mapping[Party, bytes]) -> dict[Party, PublicKey]:
    """Return the public keys, or blame the sender of a modulus that is not safe to use."""
    keys = dict[Party, PublicKey]()
    for party, modulus in moduli.items():
        if len(modulus) > MOST_BYTES:
            raise MalformedMessageError(party, f"its modulus has more than {8 * MOST_BYTES} bits")
        try:
            keys[party] = PublicKey(int.from_bytes(modulus, "little"))
        except ValueError as error:
            raise MalformedMessageError(party, str(error)) from None
    _check_coprime(keys)
    return keys


def _check_coprime(keys: Mapping[Party, PublicKey]) -> None:
    """Refuse moduli with a common factor: a site that claims another's lets it read records."""
    for one, other in combinations(keys, 2):
        if gcd(keys[one].modulus, keys[other].modulus) != 1:
            reason = "their moduli have a common factor: one may have sent the other's as its own"
            raise UnknownFaultyPartyError((one, other), reason)
