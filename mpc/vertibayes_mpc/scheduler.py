"""Run the programs of several parties in one process, in turn: no threads, deterministic.

The scheduler resumes each program whose expected messages have come. A carrier sees every message
on its way, so that a transport can encode it and a test can read or change it.

>>> import numpy as np
>>> from vertibayes_mpc.rounds import ArrayMessage, Expect, exchange
>>> def swap(peer, value):
...     ours = {peer: ArrayMessage(np.array([value], np.uint8))}
...     received = yield from exchange(ours, {peer: Expect(ArrayMessage)})
...     return int(received[peer].values[0])
>>> outputs, transcript = run_all({"alice": swap("bob", 1), "bob": swap("alice", 2)})
>>> outputs
{'alice': 2, 'bob': 1}
>>> [(sent.sender, sent.receiver) for sent in transcript]
[('alice', 'bob'), ('bob', 'alice')]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from vertibayes_mpc.errors import PartyGoneError, ProtocolError
from vertibayes_mpc.rounds import Expect, Message, Party, Program, Round, of_kind

R = TypeVar("R")


class Sent(NamedTuple):
    """One message on its way; `depth` is the length of the chain of messages that ends with it."""

    sender: Party
    receiver: Party
    message: Message
    depth: int


class Carrier(Protocol):
    """How messages travel: packed when sent, unpacked when read."""

    def pack(self, sent: Sent) -> Any:
        """Return the packet that waits in the receiver's mail box."""
        ...

    def unpack(self, packet: Any, sender: Party, receiver: Party, expect: Expect[Message]) -> Sent:
        """Return the message in what `pack` returned, if it is expected, or blame its sender."""
        ...

    def discard(self, sender: Party, receiver: Party) -> None:
        """Note that the next packet on a link is not unpacked, because its receiver is gone."""
        ...


class ByHand:
    """Hands messages over as they are, and keeps a transcript."""

    def __init__(self) -> None:
        self.transcript: list[Sent] = []

    def pack(self, sent: Sent) -> Sent:
        """Note a message and pass it on."""
        self.transcript.append(sent)
        return sent

    def unpack(self, packet: Sent, sender: Party, receiver: Party, expect: Expect[Message]) -> Sent:
        """Return a message of the kind that its receiver expects, or blame its sender."""
        del receiver
        of_kind(packet.message, expect.kind, sender)
        return packet

    def discard(self, sender: Party, receiver: Party) -> None:
        """Do nothing: messages are not counted."""


class Scheduler:
    """Steps the programs of parties that exchange messages: of those that can, the oldest."""

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier
        self.depth: dict[Party, int] = {}
        self._outputs: dict[Party, Any] = {}
        self._programs: dict[Party, Program[Any]] = {}
        self._waiting: dict[Party, Round] = {}
        self._awaited: dict[Party, set[Party]] = {}  # who has yet to send, or to read
        self._mail: dict[tuple[Party, Party], deque[Any]] = {}
        self._gone: set[Party] = set()
        self._started = 0
        self._turn: dict[Party, int] = {}
        self._line: list[tuple[int, Party]] = []  # a heap of those that may resume

    def start(self, party: Party, program: Program[object]) -> None:
        """Start a party's program and run it to its first wait. A party that was gone is back."""
        if party in self._programs:
            raise ValueError(f"{party} already runs a program")
        self._programs[party] = program
        self._gone.discard(party)
        self._started += 1
        self._turn[party] = self._started
        self.depth.setdefault(party, 0)
        self._advance(party, lambda: next(program))

    def run(self, party: Party, program: Program[R]) -> R:
        """Run a party's program to its end, stepping all others meanwhile; see `finish`."""
        self.start(party, program)
        return cast("R", self.finish(party))

    def finish(self, party: Party) -> Any:
        """Step all programs until a party's has ended; return its output.

        A ProtocolError names whom the party waits for, if no program can resume. A PartyGoneError
        says that the party itself was dropped. Errors of programs pass through unchanged.
        """
        while party in self._programs:
            ready = self._next()
            if ready is None:
                missing = [s for s in self._waiting[party].expect if s in self._awaited[party]]
                waited_for = tuple(missing or self._waiting[party].outbox)
                raise ProtocolError(waited_for, f"does not go on; {party} waits for it")
            self._resume(ready)
        if party in self._gone:
            raise PartyGoneError(party, "gone before its program ended")
        return self._outputs.pop(party)

    def drop(self, party: Party) -> None:
        """End a party's program where it waits: it is gone, and neither reads nor sends any more.

        What it sent before is still delivered. The program of each party that waits for it and
        needs it raises a `PartyGoneError` that names it; see `vertibayes_mpc.rounds.Round`.
        """
        program = self._programs.get(party)
        self._end(party)
        self._gone.add(party)
        if program is not None:
            program.close()
        for link, packets in self._mail.items():
            if link[1] == party:
                for _ in packets:
                    self.carrier.discard(*link)
                packets.clear()
        for peer in self._awaited:
            self._awaited[peer].discard(party)
            self._line_up(peer)

    def close(self) -> None:
        """End all programs where they wait."""
        for program in self._programs.values():
            program.close()
        for state in (self._programs, self._waiting, self._awaited, self._mail, self._line):
            state.clear()

    def _next(self) -> Party | None:
        """Take the oldest program that can resume."""
        while self._line:
            turn, party = heappop(self._line)
            if self._turn[party] == turn and self._can_resume(party):
                return party
        return None

    def _can_resume(self, party: Party) -> bool:
        """Whether everything that a program waits for has come, or cannot come any more."""
        return party in self._awaited and bool(not self._awaited[party] or self._missed(party))

    def _missed(self, party: Party) -> list[Party]:
        """Return the parties that are gone and that a party needs."""
        if not self._gone:
            return []
        step = self._waiting[party]
        gone = [s for s in step.expect if s in self._gone and not self._mail.get((s, party))]
        return gone if len(step.expect) - len(gone) < step.needed else []

    def _line_up(self, party: Party) -> None:
        if self._can_resume(party):
            heappush(self._line, (self._turn[party], party))

    def _resume(self, party: Party) -> None:
        """Give a program what has come, or the error that too many parties are gone."""
        program, step = self._programs[party], self._waiting[party]
        if missed := self._missed(party):
            reason = f"gone; {party} needs {step.needed} of {len(step.expect)}"
            error = PartyGoneError(tuple(missed), reason)
            self._advance(party, lambda: program.throw(error))
            return
        try:
            inbox = self._take(party)
        except BaseException:
            self._await(party, step)
            raise
        self._advance(party, lambda: program.send(inbox))

    def _take(self, party: Party) -> Mapping[Party, Message]:
        inbox = {}
        for sender, expect in self._waiting[party].expect.items():
            packets = self._mail.get((sender, party))
            if not packets:
                continue  # it is gone
            packet = packets.popleft()
            if not packets and sender in self._waiting and not self._waiting[sender].expect:
                self._has_acted(party, sender)
            sent = self.carrier.unpack(packet, sender, party, expect)
            self.depth[party] = max(self.depth[party], sent.depth)
            inbox[sender] = sent.message
        return inbox

    def _advance(self, party: Party, resume: Callable[[], Round]) -> None:
        """Resume a program until it waits for a message, or ends."""
        try:
            step = resume()
            self._waiting[party] = step
            self._post(party, step)
        except StopIteration as stop:
            self._end(party)
            self._outputs[party] = stop.value
        except BaseException:
            self._end(party)
            raise
        else:
            if party in self._programs:
                self._await(party, step)

    def _await(self, party: Party, step: Round) -> None:
        """Note whom a program waits for; one that expects nothing waits until it was read."""
        if step.expect:  # else it runs ahead by no more than a message: mail boxes stay small
            silent = {sender for sender in step.expect if not self._mail.get((sender, party))}
        else:
            silent = {reader for reader in step.outbox if self._mail.get((party, reader))}
        self._awaited[party] = silent - self._gone
        self._line_up(party)

    def _has_acted(self, peer: Party, party: Party) -> None:
        """Note that `party` need not wait for `peer` any more."""
        awaited = self._awaited.get(party, set())
        if peer in awaited:
            awaited.remove(peer)
            if not awaited:
                self._line_up(party)

    def _post(self, party: Party, step: Round) -> None:
        for receiver, message in step.outbox.items():
            if receiver in self._gone:
                continue
            packet = self.carrier.pack(Sent(party, receiver, message, self.depth[party] + 1))
            self._mail.setdefault((party, receiver), deque()).append(packet)
            if receiver in self._waiting and party in self._waiting[receiver].expect:
                self._has_acted(party, receiver)

    def _end(self, party: Party) -> None:
        for state in (self._programs, self._waiting, self._awaited):
            state.pop(party, None)


def run_all(programs: Mapping[Party, Program[Any]]) -> tuple[dict[Party, Any], list[Sent]]:
    """Run all programs to their ends; return the outputs by party, and all messages sent."""
    carrier = ByHand()
    scheduler = Scheduler(carrier)
    for party, program in programs.items():
        scheduler.start(party, program)
    return {party: scheduler.finish(party) for party in programs}, carrier.transcript
