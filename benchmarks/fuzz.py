"""Mutated messages: only named errors, no memory beyond what was declared, no hang.

    python benchmarks/fuzz.py [--fields 600000] [--messages 100000] [--sessions 3000]

Three sites, a dealer and an analyst meet, describe, commit and open tables; every message is noted
with what its receiver expects. Then

    fields     each field of each kind, at any depth, has another value, or the bytes are mutated
    decode     mutated bytes are decoded with the receiver's bounds
    envelope   mutated headers are checked
    consider   mutated queries that can be read are put to a site and to the dealer
    session    one message of a session is replaced, and the session is run to its end

Bytes are flipped, cut, inserted, taken from another message; sizes and kinds are written over.
Readable messages have fields changed, lengthened, shortened, exchanged. A message has a second of
the processor's time, a session ten; of every 20th of both the memory is traced. Whatever is not a
named error, or too slow, or too large, is printed with its place, and the exit status is 1. The
memory of a message is also given as a multiple of its frame, of frames of 8 KiB and more.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
import tracemalloc
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from runs import arguments, seed_of
from side_by_side import on_one_thread, table

from tests.broken_messages import BrokenMessages
from tests.vectors.forged import at, places, put
from tests.vectors.messages import example, message_classes
from vertibayes_mpc.errors import DealReusedError, ProtocolError
from vertibayes_mpc.rounds import Expect
from vertibayes_protocols import engine, parties, wire
from vertibayes_protocols.errors import DataError, QueryRefusedError, TransportError
from vertibayes_protocols.federation import DEALER, federate
from vertibayes_protocols.queries import Commit, Describe, Meet
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.query import Query
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.session import QUERY_CELLS
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.study import Study
from vertibayes_protocols.transports.local import EnvelopedPackets
from vertibayes_protocols.variables import Family, Rows, Variable

NAMED = ProtocolError, QueryRefusedError, DataError, TransportError, DealReusedError
SITES = {"a": "xy", "b": "z", "c": "w"}
RECORDS, MEMORY = 40, 1 << 27  # the bytes are what a query may take
FAMILIES = (Family("x", ("z",)), Family("w", ("x", "y", "z")), Family("y"))
SECONDS, SESSION_SECONDS, TRACED = 1.0, 10.0, 20
SMALL = 1 << 16  # bytes that anything may take
A_PLAN = 1 << 18  # bytes that a constructor may take: a search for an oracle's theta takes 200 kB
LARGE = 1 << 13  # bytes of a frame beside which an error's own memory is small
A_CELL = 64  # bytes that a cell, or a byte of a head, may take when it is a Python object
A_SESSION = 64 << 20
MOST_CELLS = 10_000_000  # above what any frame here has


class Slow(BaseException):
    """A message took too long; no handler of errors catches it."""


# ---- honest sessions -----------------------------------------------------------------------------


def federation():
    """Start a federation of small sites."""
    draw = np.random.default_rng(seed_of(7))
    states, ids = ("no", "yes", "maybe"), TextColumn.of([f"person {i}" for i in range(RECORDS)])
    data = {
        site: SiteData(
            {name: Variable(name, states) for name in names},
            {name: draw.integers(0, 3, RECORDS).astype(np.uint8) for name in names},
            ids,
        )
        for site, names in SITES.items()
    }
    variables = {name: v for site in data.values() for name, v in site.variables.items()}
    holders = {name: (site,) for site, names in SITES.items() for name in names}
    return federate(data), Study(b"fuzzed", variables, holders, RECORDS, DEALER, 16, MEMORY)


def talk(started, study):
    """Ask every kind of query once, tables over all records and over some."""
    session, sites = started.session, started.sites
    session.ask(Meet.of(session.role, sites, DEALER))
    session.ask(Describe(sites))
    session.ask(Commit.of(study))
    for rows in (Rows(), Rows(1, 0, 20)):
        session.ask(ask_tables(session.role.joined, FAMILIES, False, rows)[0])


class Noted(EnvelopedPackets):
    """Notes what is unpacked; of one message, changes the body."""

    def __init__(self, session, traffic, seen, place, change):
        super().__init__(session, traffic)
        self.seen, self.place, self.change, self.sent = seen, place, change, 0

    def pack(self, sent):
        """Pack a message; of the one to be changed, another body."""
        header, body = super().pack(sent)
        if self.sent == self.place:
            body = self.change(sent.message, body)
            names = self.session, sent.sender, sent.receiver
            counter = self._sent[sent.sender, sent.receiver] - 1
            header = wire.header(wire.Envelope(*names, counter, sent.depth), body)
        self.sent += 1
        return header, body

    def unpack(self, packet, sender, receiver, expect):
        """Note what comes and what is expected."""
        self.seen.append((packet, sender, receiver, expect))
        return super().unpack(packet, sender, receiver, expect)


@contextmanager
def noted(place=-1, change=None):
    """Start a federation whose messages are noted, and one of them changed."""
    seen = []

    def carrier(session, traffic):
        return Noted(session, traffic, seen, place, change)

    with mock.patch("vertibayes_protocols.transports.local.EnvelopedPackets", carrier):
        started, study = federation()
    with started:
        yield started, study, seen


# ---- running -------------------------------------------------------------------------------------


class Tried:
    """Outcomes, and what must not be among them."""

    def __init__(self):
        self.outcomes, self.wrong, self.examples = Counter(), Counter(), {}
        self.peak, self.ratio, self.longest, self.count = 0, 0.0, 0.0, 0

    def run(self, what, seconds, bound, call, frame=0):
        """Call within a time and, of some, a bound of memory; note how it ends."""
        self.count += 1
        traced = bound is not None
        if traced:
            tracemalloc.start()
        start = process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            found = call()
            outcome = found if isinstance(found, str) else "read"
        except NAMED as error:
            outcome = type(error).__name__
        except (Exception, Slow) as error:
            outcome = f"WRONG: {type(error).__name__}"
            self.note(what, error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.longest = max(self.longest, process_time() - start)
        if traced:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.peak = max(self.peak, peak)
            if frame >= LARGE:
                self.ratio = max(self.ratio, peak / frame)
            if peak > bound:
                self.note(what, MemoryError(f"{peak} bytes, at most {bound}"))
        self.outcomes[outcome] += 1
        return outcome

    def note(self, what, error):
        """Note what must not be, by its place in the source."""
        frames = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in frames if frame.name != "stop"]
        at = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        key = f"{what}: {type(error).__name__} {at}"
        self.wrong[key] += 1
        self.examples.setdefault(key, str(error)[:200])

    def row(self, what, seconds):
        """Return the row of the table."""
        told = ", ".join(f"{name} {n:,}" for name, n in self.outcomes.most_common())
        peak = f"{self.peak / 2**20:.2f}" if self.peak else ""
        ratio = f"{self.ratio:.1f}" if self.ratio else ""
        return [what, f"{self.count:,}", told, sum(self.wrong.values()),
                f"{self.longest * 1e3:.1f}", peak, ratio, f"{seconds:.0f}"]  # fmt: skip


def cells_bound(body, expect):
    return SMALL + A_CELL * min(len(body), expect.cells)


def every_field(broken, count):
    """Decode messages of each kind in which each value, one after the other, is another one."""
    tried, messages = Tried(), [example(cls) for cls in message_classes().values()]
    pairs = [(message, path) for message in messages for path in places(message)]

    def alien(_):
        return at(*broken.choose(pairs))

    for number in range(count):
        message, path = pairs[number % len(pairs)]
        way = broken.choose([broken.value] * 9 + [broken.long, alien, alien, alien])
        new = way(at(message, path))
        body = wire.encode(put(message, path, new))
        if broken.below(4) == 0:
            body = broken.bytes(body)
        expect = Expect(type(message), MOST_CELLS)
        if number < len(pairs):  # its type is compiled
            read(wire.encode(message), "a", expect)
        bound = A_PLAN + A_CELL * len(body) if (number // len(pairs)) % TRACED == 0 else None
        tried.run(
            f"{message.kind}: {'.'.join(map(str, path))}", SECONDS, bound,
            lambda b=body, e=expect: read(b, "a", e), len(body),
        )  # fmt: skip
    return tried


def decode(seen, broken, count):
    """Decode mutated bodies."""
    tried = Tried()
    for number in range(count):
        (_, body), sender, _, expect = broken.choose(seen)
        changed = broken.bytes(body)
        bound = cells_bound(changed, expect) if number % TRACED == 0 else None
        tried.run(
            "decode", SECONDS, bound,
            lambda c=changed, s=sender, e=expect: read(c, s, e), len(changed),
        )  # fmt: skip
    return tried


def read(body, sender, expect):
    message = wire.decode(body, sender, expect)
    if not isinstance(message, expect.kind):
        raise TypeError(f"{message.kind} was read")


def envelopes(seen, broken, count):
    """Check mutated headers."""
    tried = Tried()
    for number in range(count):
        (header, body), sender, receiver, _ = broken.choose(seen)
        _, session, _, _, counter, depth, _ = wire.ENVELOPE.unpack(header)
        expected = wire.Envelope(session, sender, receiver, counter, depth)
        changed = broken.bytes(header)
        bound = SMALL if number % TRACED == 0 else None
        tried.run(
            "envelope", SECONDS, bound,
            lambda c=changed, b=body, e=expected: wire.check_header(c, b, e) and None,
        )  # fmt: skip
    return tried


def consider(broken, kind, count):
    """Put mutated queries of a kind to parties that have committed, and may have counted."""
    tried, roles = Tried(), {}

    def serve(role, *others):
        roles[role.party] = role
        return parties.serve(role, *others)

    with mock.patch("vertibayes_protocols.federation.serve", serve), noted() as (started, study, _):
        talk(started, study)
        queries, sides = queries_of(started, study)[kind], [roles["a"], roles[DEALER]]
        for number in range(count):
            query, role = broken.message(broken.choose(queries)), broken.choose(sides)
            body = wire.encode(query)
            bound = SMALL + A_CELL * len(body) if number % TRACED == 0 else None
            tried.run(
                f"{query.kind} considered at {role.party}", SECONDS, bound,
                lambda r=role, b=body: consider_at(r, b), len(body),
            )  # fmt: skip
    return tried


def queries_of(started, study):
    """Return the queries of each kind."""
    joined = started.session.role.joined
    tables = [ask_tables(joined, FAMILIES, m, Rows(1, 0, 20))[0] for m in (False, True)]
    queries = Meet.of(started.session.role, started.sites, DEALER), Describe(started.sites)
    kinds = {query.kind: [query] for query in (*queries, Commit.of(study))}
    return {**kinds, tables[0].kind: tables}


def consider_at(role, body):
    query = wire.decode(body, "analyst", Expect(Query, QUERY_CELLS))
    if isinstance(role, DealerRole) and not query.is_dealt:
        return "no part"
    engine.consider(role, query)
    return "agreed"


def sessions(broken, count, messages):
    """Run sessions in which one message is another."""
    tried = Tried()

    def change(message, body):
        if broken.below(3) == 0:
            return broken.bytes(body)
        return wire.encode(broken.message(message))

    def run(place):
        with noted(place, change) as (started, study, _):
            talk(started, study)
        return "ended"

    for number in range(count):
        place = number % messages
        bound = A_SESSION if number % TRACED == 0 else None
        tried.run(f"session, message {place}", SESSION_SECONDS, bound, lambda p=place: run(p))
    return tried


def main():
    """Run all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fields", type=int, default=600_000, help="messages of every kind")
    parser.add_argument("--messages", type=int, default=100_000, help="bodies to decode")
    parser.add_argument("--envelopes", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100_000, help="of each kind")
    parser.add_argument("--sessions", type=int, default=3_000)
    given = arguments(parser)
    signal.signal(signal.SIGPROF, stop)
    with noted() as (started, study, seen):
        talk(started, study)
        kinds = tuple(queries_of(started, study))
    broken = BrokenMessages(given.seed, [packet[1] for packet, *_ in seen])
    parts = {
        "every field": lambda: every_field(broken, given.fields),
        "decode": lambda: decode(seen, broken, given.messages),
        "envelope": lambda: envelopes(seen, broken, given.envelopes),
        **{
            f"{kind}, considered": lambda k=kind: consider(broken, k, given.queries)
            for kind in kinds
        },
        "session": lambda: sessions(broken, given.sessions, len(seen)),
    }
    rows, wrong = [], {}
    for name, part in parts.items():
        start = perf_counter()
        tried = part()
        rows.append(tried.row(name, perf_counter() - start))
        wrong |= {key: (n, tried.examples[key]) for key, n in tried.wrong.items()}
    header = ["messages", "tried", "outcomes", "wrong", "longest ms", "peak MiB", "peak / frame",
              "seconds"]  # fmt: skip
    print(table("fuzz", header, rows))
    for key, (n, words) in wrong.items():
        print(f"WRONG {n} x {key}: {words}", file=sys.stderr)
    raise SystemExit(bool(wrong))


def stop(*_):
    raise Slow


if __name__ == "__main__":
    on_one_thread()
    main()
