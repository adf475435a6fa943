"""The parties that a query names, with their public keys: what each party compares with its own.

An analyst who could name the dealer could read all data.
"""

from __future__ import annotations

from collections.abc import Sequence

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.roles import DealerRole, SiteRole

SESSION_BYTES = 16  # random, and new in each run


def check_named(parties: Sequence[Party], keys: Sequence[bytes], session: bytes) -> None:
    """Refuse sites and a dealer, in this order, that are not parties of a study."""
    if len(keys) != len(parties) or len(session) != SESSION_BYTES:
        raise ValueError("the study must have one key per party, and a session")
    if len({*parties}) < len(parties) or len(parties) < 2:
        raise ValueError("the study has no sites, or names a party twice")


def check_pinned(
    role: SiteRole | DealerRole, parties: Sequence[Party], keys: Sequence[bytes]
) -> None:
    """Refuse, with a ValueError, parties that differ from those that a party has pinned."""
    named, dealer = parties[-1], role.dealer if isinstance(role, SiteRole) else role.party
    if named != dealer:
        raise ValueError(
            f"the study names {named!r} as the dealer, the dealer pinned here is {dealer!r}"
        )
    known = {**role.public_keys, role.party: role.keys.public}
    for name, key in zip(parties, keys, strict=True):
        if name not in known:
            raise ValueError(f"no public key of {name!r} is pinned here")
        if key != known[name]:
            theirs = encode_public(key) if key else "none"
            raise ValueError(
                f"the study has another public key for {name!r} than is pinned here: {theirs}, "
                f"here {encode_public(known[name])}"
            )
