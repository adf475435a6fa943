"""The contract of a study: who takes part, what is learned of which variables, what is released.

A contract is canonical JSON: keys in order, no spaces, ASCII. Its SHA-256 is the digest by which
the owner of each site approves it. Two parties that see the same digest see the same contract.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import Alignment, AlignmentRequest
from vertibayes_protocols.canonical import Kinds, canonical_json, taken
from vertibayes_protocols.policy import GIBIBYTE
from vertibayes_protocols.public_keys import decode_public, encode_public
from vertibayes_protocols.release import Rule

FORMAT = 1
MOST_BYTES = 4_000_000  # of the JSON
MOST_PARTIES = 1000
MOST_VARIABLES = 65_000
MOST_NAME = 1000  # characters
MOST_RUNS = 1000
MOST_MEMORY = 1 << 50
DIGEST_BYTES = 32
ALIGN, DESCRIBE = "align", "describe"  # kinds of queries
OPENING = "meet", DESCRIBE, "commit"

Member: TypeAlias = tuple[Party, bytes]  # a party and its public key


@dataclass(frozen=True)
class Contract:
    """What the owners of all sites approve."""

    sites: tuple[Member, ...]  # the sites and their public keys, in the order of the study
    # The dealer and the analyst, with their public keys.
    dealer: Member
    analyst: Member
    variables: tuple[str, ...]  # the variables of the study, in its order
    learner: str  # what is learned
    options: Mapping[str, Any] = field(hash=False)  # how it is learned
    rule: Rule | None  # by which rule tables are released; None: the options say
    queries: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    runs: int = 1  # how often the study may be run
    memory: int = GIBIBYTE  # how many bytes one query may take at a party
    alignment: Alignment | None = None  # who is in the study; None: all hold the same people

    def __post_init__(self) -> None:
        members = *self.sites, self.dealer, self.analyst
        for what, values, most in (
            ("parties", [name for name, _ in members], MOST_PARTIES),
            ("keys", [key for _, key in members], MOST_PARTIES),
            ("variables", self.variables, MOST_VARIABLES),
        ):
            if not 1 <= len(values) <= most:
                raise ValueError(f"a contract must have 1 to {most} {what}, got {len(values)}")
            if len(set(values)) < len(values):
                raise ValueError(f"two {what} of the contract are the same; name each once")
        if not self.sites:
            raise ValueError("the contract has no sites; name at least one")
        names = *self.variables, self.learner, *(name for name, _ in members)
        for name in names:
            if not 1 <= len(name) <= MOST_NAME:
                raise ValueError(
                    f"a name in a contract must have 1 to {MOST_NAME} characters, got {len(name)}"
                )
        if not 1 <= self.runs <= MOST_RUNS:
            raise ValueError(f"`runs` must be between 1 and {MOST_RUNS}, got {self.runs}")
        if not 1 <= self.memory <= MOST_MEMORY:
            raise ValueError(f"`memory` must be between 1 and {MOST_MEMORY}, got {self.memory}")
        if self.alignment is not None and self.alignment.sites != self.site_names:
            raise ValueError("the sites of the alignment must be those of the contract, in order")

    def check_parties(self, kind: str, asked: Collection[Party], *, dealer: bool) -> None:
        """Refuse parties other than the sites and the dealer; declared queries may omit sites."""
        named = (*self.site_names, self.dealer[0]) if dealer else self.site_names
        if not self.queries and sorted(asked) != sorted(named):
            raise ValueError(f"the parties of {kind!r} are not those of the contract")

    def check_keys(self, parties: Iterable[Party], keys: tuple[bytes, ...]) -> None:
        """Refuse, with a ValueError, other keys of parties than those of the contract."""
        if keys != tuple(map(self.keys.get, parties)):
            raise ValueError("the keys of the parties are not those of the contract")

    @property
    def keys(self) -> dict[Party, bytes]:
        """The public keys of all parties."""
        return dict([*self.sites, self.dealer, self.analyst])

    @property
    def site_names(self) -> tuple[Party, ...]:
        """The names of the sites, in the order of the study."""
        return tuple(name for name, _ in self.sites)

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the canonical JSON: 32 bytes."""
        return hashlib.sha256(self.canonical).digest()

    @property
    def canonical(self) -> bytes:
        """The canonical JSON, in ASCII."""
        return canonical_json(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return the contract as JSON data."""
        return {
            "format": FORMAT,
            "sites": [_member_json(site) for site in self.sites],
            "dealer": _member_json(self.dealer),
            "analyst": _member_json(self.analyst),
            "variables": list(self.variables),
            "learner": self.learner,
            "options": self.options,
            "rule": None if self.rule is None else asdict(self.rule),
            "queries": list(self.queries),
            "runs": self.runs,
            "memory": self.memory,
            **({} if self.alignment is None else {"alignment": self.alignment.as_json()}),
        }

    @classmethod
    def from_json(cls, content: Any) -> Contract:
        """Return the contract of JSON data."""
        is_aligned = isinstance(content, dict) and "alignment" in content
        fields = {**_FIELDS, "alignment": dict} if is_aligned else _FIELDS
        values = taken(content, "contract", fields)
        if is_aligned:
            values["alignment"] = Alignment.from_json(values["alignment"])
        if values.pop("format") != FORMAT:
            raise ValueError(
                f"the format of the contract is {content['format']}, and this release reads "
                f"{FORMAT}; use one release of vertibayes at all parties"
            )
        if not all(type(name) is str for name in values["variables"]):
            raise ValueError("the names of the contract's variables must be texts")
        contract = cls(
            **{
                **values,
                "sites": tuple(map(_member, values["sites"])),
                "dealer": _member(values["dealer"]),
                "analyst": _member(values["analyst"]),
                "variables": tuple(values["variables"]),
                "rule": _rule(values["rule"]),
                "queries": tuple(taken(query, "query", _QUERY) for query in values["queries"]),
            }
        )
        if len(contract.canonical) > MOST_BYTES:
            size = len(contract.canonical)
            raise ValueError(f"the contract has {size:,} bytes, at most {MOST_BYTES:,} are allowed")
        return contract


_FIELDS: dict[str, Kinds] = {
    "format": int, "sites": list, "dealer": dict, "analyst": dict, "variables": list,
    "learner": str, "options": dict, "rule": (dict, type(None)), "queries": list, "runs": int,
    "memory": int,
}  # fmt: skip
_QUERY = {"kind": str, "fields": dict}
_RULE = {"kind": str, "fewest": int, "epsilon": float, "delta": float, "dishonest": float}


def _rule(content: Any) -> Rule | None:
    return None if content is None else Rule(**taken(content, "rule", _RULE))


def _member_json(member: Member) -> dict[str, str]:
    return {"name": member[0], "public_key": encode_public(member[1])}


def _member(content: Any) -> Member:
    values = taken(content, "party", {"name": str, "public_key": str})
    return values["name"], decode_public(values["public_key"])


def opening_of(alignment: Alignment | AlignmentRequest | None) -> tuple[str, ...]:
    """Return the kinds of queries that open a study, in order; columns of rows are described first.

    >>> opening_of(None)
    ('meet', 'describe', 'commit')
    """
    if alignment is None:
        return OPENING
    return (*((ALIGN,) if alignment.level == 1 else (DESCRIBE, ALIGN)), *OPENING)


def grouped_digest(digest: bytes) -> str:
    """Return a digest in groups of four hexadecimal digits, which two people can read out."""
    text = digest.hex()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))
