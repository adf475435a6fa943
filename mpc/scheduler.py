"""Run the programs of several parties in one process, in turn: no threads, deterministic.

The scheduler steps each program whose expected messages have come. A carrier sees every message on
its way, so that a transport can encode it, and a test can read or change it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from mpc.errors import ProtocolError, UnexpectedMessageError
from mpc.rounds import Expect, Message, Party, Program, Round

R = TypeVar("R")


class Sent(NamedTuple):
    """One message on its way. `depth` is the length of the chain of messages that ends with it."""

    sender: Party
    receiver: Party
    message: Message
    depth: int


class Carrier(Protocol):
    """How messages travel: packed when sent, unpacked when taken."""

    def pack(self, sent: Sent) -> Any:
        """Return what lies in the receiver's mail box."""
        ...

    def unpack(self, packet: Any, sender: Party, receiver: Party, expect: Expect) -> Sent:
        """Return the message, or blame the sender for it."""
        ...


class ByHand:
    """Hands messages over as they are, and keeps a transcript."""

    def __init__(self) -> None:
        self.transcript: list[Sent] = []

    def pack(self, sent: Sent) -> Sent:
        """Note a message and pass it on."""
        self.transcript.append(sent)
        return sent

    def unpack(self, packet: Sent, sender: Party, receiver: Party, expect: Expect) -> Sent:
        """Return a message of the kind that its receiver expects.

        Raises
        ------
        UnexpectedMessageError
            If it is of another kind; it names the sender.
        """
        if not isinstance(packet.message, expect.kind):
            wanted, came = expect.kind.__name__, type(packet.message).__name__
            raise UnexpectedMessageError(sender, f"sent {came} to {receiver}, who wants {wanted}")
        return packet


class Scheduler:
    """Steps the programs of parties that exchange messages.

    Parameters
    ----------
    carrier : Carrier
    """

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier
        self.depth: dict[Party, int] = {}
        self._outputs: dict[Party, Any] = {}
        self._programs: dict[Party, Program[Any]] = {}
        self._waiting: dict[Party, Round] = {}
        self._mail: dict[tuple[Party, Party], deque[Any]] = {}

    def start(self, party: Party, program: Program[Any]) -> None:
        """Begin a party's program: run it to its first wait."""
        if party in self._programs:
            raise ValueError(f"{party} is running a program already")
        self._programs[party] = program
        self.depth.setdefault(party, 0)
        self._advance(party, None)

    def run(self, party: Party, program: Program[R]) -> R:
        """Run a party's program to its end, stepping all others meanwhile; see `finish`."""
        self.start(party, program)
        output: R = self.finish(party)
        return output

    def finish(self, party: Party) -> Any:
        """Step all programs until a party's has ended; return its output.

        Raises
        ------
        ProtocolError
            If nobody can go on; it names who is waited for. Errors of programs come as they are.
        """
        while party in self._programs:
            ready = next((p for p in self._programs if self._is_ready(p)), None)
            if ready is None:
                step = self._waiting[party]
                missing = [s for s in step.expect if not self._mail.get((s, party))]
                raise ProtocolError(
                    ", ".join(missing or step.outbox), f"does not go on; {party} waits for it"
                )
            self._advance(ready, self._take(ready))
        return self._outputs.pop(party)

    def close(self) -> None:
        """End all programs where they wait."""
        for program in self._programs.values():
            program.close()
        self._programs.clear()
        self._mail.clear()

    def _is_ready(self, party: Party) -> bool:
        """Whether all it waits for has come; who waits for nothing, waits to be read.

        So nobody runs ahead of the others by more than a message, and mail boxes stay small.
        """
        step = self._waiting[party]
        if not step.expect:
            return not any(self._mail[party, receiver] for receiver in step.outbox)
        return all(self._mail.get((sender, party)) for sender in step.expect)

    def _take(self, party: Party) -> Mapping[Party, Message]:
        inbox = {}
        for sender, expect in self._waiting[party].expect.items():
            packet = self._mail[sender, party].popleft()
            sent = self.carrier.unpack(packet, sender, party, expect)
            self.depth[party] = max(self.depth[party], sent.depth)
            inbox[sender] = sent.message
        return inbox

    def _advance(self, party: Party, inbox: Mapping[Party, Message] | None) -> None:
        """Let a program go on until it waits for a message, or ends."""
        program = self._programs[party]
        try:
            step = next(program) if inbox is None else program.send(inbox)
            self._post(party, step)
            self._waiting[party] = step
        except StopIteration as stop:
            del self._programs[party]
            self._outputs[party] = stop.value
        except BaseException:
            del self._programs[party]
            raise

    def _post(self, party: Party, step: Round) -> None:
        for receiver, message in step.outbox.items():
            packet = self.carrier.pack(Sent(party, receiver, message, self.depth[party] + 1))
            self._mail.setdefault((party, receiver), deque()).append(packet)


def run_all(programs: Mapping[Party, Program[Any]]) -> tuple[dict[Party, Any], list[Sent]]:
    """Run all programs to their ends; return the outputs by party, and all messages sent."""
    carrier = ByHand()
    scheduler = Scheduler(carrier)
    for party, program in programs.items():
        scheduler.start(party, program)
    return {party: scheduler.finish(party) for party in programs}, carrier.transcript
