"""The bytes that parties send, made again: compared by `tests/test_vectors.py`, written by

    python -m tests.vectors.make

All randomness is injected, and all data are computed: a difference is a difference of the bytes.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest.mock import patch

import numpy as np

from tests.randomness import SeededRandomness
from tests.vectors.frozen import FOLDER, frozen, frozen_links, write
from tests.vectors.messages import EACH_TYPE, example, message_classes
from tests.worlds import shuffle, world
from vertibayes.counting.secure import SecureCounter
from vertibayes_mpc.masked_tables import Group
from vertibayes_mpc.randomness import KeyPair, StreamKey
from vertibayes_protocols import wire
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.seal import UNKNOWN, Identity, Seal
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.local import EnvelopedPackets
from vertibayes_protocols.variables import Family, Rows, Variable
from vertibayes_protocols.wire import Envelope, encode
from vertibayes_protocols.wire.types import parts_of

SESSION = bytes(range(16))
RECORDS = 40  # in blocks of 16
CHOSEN = np.array([place for place in range(RECORDS) if place % 3])


def codes_of(place: int, states: int) -> np.ndarray:
    """Return a column of codes that looks irregular."""
    codes = [(r * r + (2 * place + 3) * r + r // (place + 2)) % 97 for r in range(RECORDS)]
    return np.array([code % states for code in codes], np.uint8)


# ---- messages and envelopes ----------------------------------------------------------------------


def wire_vectors():
    """Make an example of each kind of message, and headers."""
    return {
        "each type": frozen(encode(EACH_TYPE)),
        "envelopes": {
            f"{e.sender} -> {e.receiver}, {e.counter}, {e.depth}": wire.header(e, body).hex()
            for e, body in (
                (Envelope(SESSION, "a", "b", 0, 1), b""),
                (Envelope(bytes(16), "hospital-ü", "dealer", 2**40, 2**31), b"body" * 16),
            )
        },
        "kinds": {
            kind: {
                "fields": list(parts_of(cls)),
                "body": frozen(encode(example(cls))),
            }
            for kind, cls in message_classes().items()
        },
    }


# ---- seals ---------------------------------------------------------------------------------------


TEXTS = [("a", "b", b"first"), ("a", "b", b""), ("b", "a", b"answer"), ("a", "b", b"long" * 30)]


def seal_vectors():
    """Make the packets of a session of two parties, each opened by its receiver."""
    keys = {party: KeyPair(hashlib.sha256(party.encode()).digest()) for party in "ab"}
    identities = {
        own: Identity(own, keys[own], {peer: keys[peer].public}) for own, peer in ("ab", "ba")
    }
    seals = {p: Seal(identities[p], SESSION, SeededRandomness(p.encode())) for p in "ab"}
    packets, opened = {}, {}
    for a, b in ("ab", "ba"):
        packets[f"hello {a} -> {b}"] = seals[a].greet(b, f"text for {b}".encode())
    for a, b in ("ab", "ba"):
        name = f"hello {a} -> {b}"
        opened[name] = seals[b].welcome(a, packets[name])
    for number, (a, b, text) in enumerate(TEXTS):
        name = f"data {number}, {a} -> {b}"
        packets[name] = seals[a].seal(b, text)
        opened[name] = seals[b].open(a, packets[name])
    unknown = identities["a"].seal_statically("b", UNKNOWN, SESSION, b"?", SeededRandomness(b"u"))
    packets["unknown a -> b"] = unknown
    opened["unknown a -> b"] = identities["b"].open_statically("a", unknown)
    return {
        name: {"packet": frozen(packet), "text": opened[name].decode()}
        for name, packet in packets.items()
    }


# ---- a session -----------------------------------------------------------------------------------


LIMITS = {
    "policy": Policy(most_variables=5, free_tables=True),
    "memory_budget": 1 << 30,
}  # sites describe them
NARROW, WIDE, INCOMPLETE = Family("z", ("y", "x")), Family("w", ("u",)), Family("v", ("y", "x"))
QUESTIONS = [
    ("all records", [NARROW, Family("z", ("y", "u")), Family("u")], {}),
    ("wide", [WIDE], {}),
    ("missing values", [INCOMPLETE, Family("v", ("w",))], {"missing": True}),
    ("chosen records", [INCOMPLETE, WIDE, Family("w", ("v",))], {"rows": Rows(5, 3, 25)}),
]


def session_data() -> dict[str, SiteData]:
    """Return three sites' columns: one with missing values, one too wide to be multiplied."""
    columns = {
        "p": [Variable("u", ("0", "1", "2")), Variable("v", ("no", "yes"), missing=True)],
        "q": [Variable("w", tuple(f"state {i}" for i in range(12))), Variable("x", ("a", "b"))],
        "r": [Variable("y", ("low", "middle", "high")), Variable("z", ("ü", "ö"))],
    }
    ids = TextColumn.of(f"record {i}" for i in range(RECORDS))
    return {
        site: SiteData(
            {v.name: v for v in variables},
            {v.name: codes_of(ord(v.name), v.codes) for v in variables},
            ids,
        )
        for site, variables in columns.items()
    }


def session_vectors():
    """Run a session: the parties meet, describe, commit, and count tables in both ways.

    Each party has randomness of its own, so that its messages do not depend on whose turn it is.
    """
    data = session_data()
    memories = {s: SiteMemory(randomness=SeededRandomness(b"memory " + s.encode())) for s in data}
    transcript, pack = [], EnvelopedPackets.pack

    def watched(carrier, sent):
        transcript.append(sent)
        return pack(carrier, sent)

    with patch.object(EnvelopedPackets, "pack", watched):
        with federate(
            data, memories=memories, randomness=SeededRandomness(), **LIMITS
        ) as federation:
            for site, role in federation.roles.items():
                role.randomness = SeededRandomness(b"site " + site.encode())
            federation.session.role.randomness = SeededRandomness(b"analyst")
            counter = SecureCounter.of(federation, order=list("zyxwvu"), block_rows=16)
            tables = {name: counter.tables(asked, **how) for name, asked, how in QUESTIONS}
    return {
        "messages": frozen_links(transcript),
        "tables": {name: frozen_tables(counted) for name, counted in tables.items()},
    }


def frozen_tables(tables) -> list[str]:
    """Record tables, a line each."""
    return [str(table.tolist()) for table in tables]


# ---- tables --------------------------------------------------------------------------------------


def stream_of(a: str, b: str) -> StreamKey:
    """Return the key of two parties."""
    return StreamKey(hashlib.sha256(f"{a} {b}".encode()).digest())


COLUMNS = [  # whose, states, whether values are missing: then the last code
    ("a", 3, False),
    ("a", 3, True),
    ("b", 3, False),
    ("b", 4, False),
    ("c", 2, False),
    ("c", 4, True),
]
WAYS = {  # missing values, chosen records
    "all records": (False, None, b""),
    "missing values": (True, None, b""),
    "chosen records": (False, CHOSEN, b"sample"),
    "missing values of chosen records": (True, CHOSEN, b"sample"),
}


def world_of(columns, bits: int, stream):
    """Return the world of these columns, and its commitments' messages."""
    held = [
        (states - 1, missing, {site: codes_of(place, states)})
        for place, (site, states, missing) in enumerate(columns)
    ]
    small = world(held, RECORDS, bits, stream=stream)
    return small, small.commit()


def masked_vectors(stream=stream_of):
    """Count masked tables of three sites: extended, multiplied, and of one site alone."""
    groups = [Group((0,), (2, 4)), Group((0, 2), (5,)), Group((1, 3), (4,)), Group((1,))]
    made = {}
    for bits in (16, 32):
        small, transcript = world_of(COLUMNS, bits, stream)
        made[f"commitments, {bits} bits"] = frozen_links(transcript)
        for name, (missing, chosen, sample) in WAYS.items():
            plan = small.plan(groups, missing, chosen, sample)
            made[f"{name}, {bits} bits"] = counted(*small.count(plan))
    return made


def shuffled_vectors(stream=stream_of):
    """Count shuffled tables of three sites: of all, of two, and of one alone."""
    columns = [*COLUMNS, ("b", 30, False), ("c", 12, True)]
    families = [(0, 6), (1, 7, 2), (5, 7)]
    small, transcript = world_of(columns, 16, stream)
    made = {"commitments": frozen_links(transcript)}
    for name, (missing, chosen, sample) in WAYS.items():
        _, tables, transcript = shuffle(small, families, missing, chosen, sample)
        made[name] = counted(tables, transcript)
    return made


def counted(tables, transcript):
    """Record a query for tables."""
    return {"messages": frozen_links(transcript), "tables": frozen_tables(tables)}


# ---- all of it -----------------------------------------------------------------------------------

VECTORS: Mapping[str, Callable[[], dict]] = {
    "wire": wire_vectors,
    "seal": seal_vectors,
    "session": session_vectors,
    "masked_tables": masked_vectors,
    "shuffled_tables": shuffled_vectors,
}


def main(folder: Path = FOLDER) -> None:
    """Write all files."""
    made = {name: make() for name, make in VECTORS.items()}
    try:
        for name, vectors in made.items():
            write(name, vectors, wire.VERSION, folder)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
