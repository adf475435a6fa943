"""The parties of a simulation, made of the product's own parts.

A site or a dealer is the product's `_Serving` over a simulated link, whose turns the world calls. A
party's folder outlives its processes, as do its keys, its data and its owner's approvals.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from tests.simulation.disk import Disk
from tests.simulation.network import Link, Outbox, WaitingLink
from tests.simulation.world import Failure, Killed, Process
from vertibayes.study_files import RunFile
from vertibayes_mpc.errors import ProtocolError
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.approved_study import open_approved
from vertibayes_protocols.errors import QueryRefusedError, TransportError
from vertibayes_protocols.open_study import Renewing
from vertibayes_protocols.parties import Watch
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Session
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.mailbox import Mailbox, Patience
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.transports.serving import _Serving

PATIENCE = Patience(silent=60.0, gone=5.0, probe=2.0, hello=20.0)
NAMED = ProtocolError, TransportError, QueryRefusedError
SYNCS_A_BACKUP = 7
AGAIN_SECONDS = 1.0  # before a service starts a party again that has ended


class Party:
    """A party, whose processes come and go."""

    def __init__(self, world, name, identity):
        self.world, self.name, self.identity = world, name, identity
        self.process, self.offset, self.down = None, 0.0, 0.0
        self.went_back = False  # to a backup
        world.parties[name] = self

    def crash(self, power=False, away=AGAIN_SECONDS):
        """Kill the process; start it again after a while."""
        process, self.process = self.process, None
        if process is None:
            return
        process.is_dead, process.is_cut = True, power
        process.inbox.clear()
        self.world.processes.pop(process.address, None)
        self.world.note(self.name, "loses its power" if power else "is killed")
        self.lost(power)
        process.forget()
        self.world.after(away, self.start)

    def lost(self, power):
        """Take what the disk loses with the process."""

    def stop(self, away):
        """End the process as a service manager does: it leaves its sessions."""
        process = self.process
        if isinstance(process, _Server):
            process.is_stopping = True
            with suppress(Killed), self.world.running(process):
                process.serving.stop(KeyboardInterrupt())
        self.crash(away=away)

    def start(self):
        """Start a process, if there is none."""

    def synced(self, name):
        """Note that a file was synced."""


class Relay(Party):
    """The relay: down until a time, and nothing else."""

    def __init__(self, world):
        super().__init__(world, "relay", None)


class _Process(Process):
    """A process with a link, whose next packet may meet a fault."""

    def __init__(self, party, address):
        super().__init__(party.world, party, address)
        self.next_packet, self.is_cut, self.is_due = "", False, False
        self.world.processes[address] = self

    def put(self, sender, packet):
        self.inbox.append((sender, packet))
        self.wake()

    def wake(self):
        """Run the process when the next event comes."""

    def forget(self):
        """Let go of what waits in a process that is dead, now and not when it is collected."""


class _Server(_Process):
    """A process that serves sessions."""

    def __init__(self, party, role, analysts):
        super().__init__(party, party.name)
        self.link = Link(self)
        self.mailbox = Mailbox(self.link, party.identity, PATIENCE, clock=self.world.monotonic)
        self.serving = _Sessions(self.mailbox, role, analysts, KINDS, self._watch)
        self.serving.process = self
        self.serving._outbox = self.outbox = Outbox(self.link)
        self.wakes = math.inf  # when it is run next
        self.is_stopping = False

    def forget(self):
        for served in self.serving.live.values():
            with suppress(BaseException):  # it runs, or closes its files, which are gone
                served.steps.close()

    def _watch(self, role, session):
        del role, session
        return _Ended(self.party)

    def wake(self):
        self.wake_at(self.world.time)

    def wake_at(self, time):
        if time < self.wakes and not self.is_dead:
            self.wakes = time
            self.world.after(time - self.world.time, partial(self._run, time))

    def _run(self, due):
        if self.is_dead or self.is_stopping or due != self.wakes:
            return
        self.wakes = math.inf
        if self.is_frozen:
            self.wake_at(self.frozen)
            return
        try:
            with self.world.running(self):
                while self._turn():
                    pass
        except Killed:
            return
        if self.is_frozen:
            self.wake_at(self.frozen)
        elif self.link.deadline < math.inf:
            self.wake_at(self.link.deadline)

    def _turn(self):
        """Take a turn; return whether there is something left to do at once."""
        had = bool(self.outbox.ended)
        self.serving.turn()
        left = self.inbox or self.outbox.ended or not self.link.is_empty
        return not self.is_frozen and bool(had or left or self.link.deadline <= self.world.time)


class _Sessions(_Serving):
    """The product's sessions; the world knows which of them runs."""

    def _run(self, served, go_on):
        self.process.world.session = served.channel.connection.session
        super()._run(served, go_on)


class _Ended(Watch):
    """Says how a session has ended; errors that name nobody are failures."""

    def __init__(self, party):
        self.party = party

    def ended(self, error):
        self.party.world.note(self.party.name, f"session ended: {error}")
        if isinstance(error, Failure):
            raise error
        if not isinstance(error, (*NAMED, OSError, type(None))):
            raise Failure(f"{self.party.name}: {type(error).__name__}: {error}") from error


class Dealer(Party):
    """The dealer."""

    def __init__(self, world, name, identity, sites, analysts):
        super().__init__(world, name, identity)
        self.sites, self.analysts = sites, analysts

    def start(self):
        if self.process is None:
            public = {site: self.identity.peers[site] for site in self.sites}
            role = DealerRole(self.name, self.identity.keys, public)
            self.process = _Server(self, role, self.analysts)
            self.process.wake()


class Keeper(Party):
    """A party with a disk."""

    def __init__(self, world, name, identity, system):
        super().__init__(world, name, identity)
        self.disk, self.syncs = Disk(Path(system.root) / name, self), 0
        system.disks[name] = self.disk

    def lost(self, power):
        self.disk.crash(power, self.world.draw)

    def synced(self, name):
        """Let somebody copy the folder now and then."""
        self.syncs += 1
        if self.syncs % SYNCS_A_BACKUP == 0:
            self.disk.keep_backup()


class Site(Keeper):
    """A site: its data, its owner's approvals, its memory and its ledger."""

    def __init__(self, world, name, identity, system, data, dealer, analysts, policy=None):
        super().__init__(world, name, identity, system)
        self.data, self.dealer, self.analysts = data, dealer, analysts
        self.policy, self.approved, self.folder = policy or Policy(), {}, self.disk.folder
        self.former_keys = {}  # of the roster

    def start(self):
        """Start a process; a service tries again where the disk is full."""
        if self.process is not None:
            return
        process = self.process = _Starting(self)
        try:
            with self.world.running(process):
                role = self._role()
                self.process = None
                self.process = _Server(self, role, self.analysts)
        except Killed:
            return
        except OSError as error:
            self.world.note(self.name, f"cannot start: {error}")
            self.crash()
            return
        except Exception as error:
            raise Failure(f"{self.name} cannot start: {error}") from error
        self.process.wake()

    def _role(self):
        peers, keys = self.identity.peers, self.identity.keys
        public = {party: key for party, key in peers.items() if party not in self.analysts}
        analyst, memory = next(iter(self.analysts)), SiteMemory(self.folder / "memory")
        role = SiteRole(
            self.name, self.data, keys, public, dealer=self.dealer, analyst=analyst,
            policy=self.policy, memory=memory, ledger=LedgerFile(self.folder / "ledger", memory),
            analyst_key=self.analysts[analyst], former_keys=self.former_keys,
        )  # fmt: skip
        role.approvals = self.approved.get
        return role


class _Starting(_Process):
    """A process that reads its files: nobody reaches it yet."""

    def __init__(self, party):
        super().__init__(party, f"{party.name} starts")
        self.link = Link(self)

    def put(self, sender, packet):
        raise Failure("a packet reaches a process that starts")


class Analyst(Keeper):
    """The analyst: a command that runs a study, and is given again when it has failed."""

    def __init__(self, world, name, identity, system, parties):
        super().__init__(world, name, identity, system)
        self.asks, self.number = parties, 0
        self.results = None  # of the last command, which writes them before it ends its run

    def command(self, run):
        """Run a command in a new process; `run` gets it. It ends the process, however it ends."""
        self.number += 1
        process = self.process = _Analyzing(self, f"{self.name}~{self.number:016x}")
        try:
            with self.world.running(process):
                return run(process)
        finally:
            if not process.is_dead:
                self.process = None
                self.world.processes.pop(process.address, None)
                self.disk.crash(False, self.world.draw)
                process.is_dead, process.is_cut = True, False


class _Analyzing(_Process):
    """The process of one command of an analyst."""

    def __init__(self, party, address):
        super().__init__(party, address)
        self.link = WaitingLink(self)
        self.mailbox = Mailbox(self.link, party.identity, PATIENCE, clock=self.world.monotonic)
        keys = party.identity.keys
        self.role = AnalystRole(party.name, public_keys=dict(party.identity.peers), keys=keys)

    def begin(self):
        """Begin a session."""
        self.role.joined = None
        return Session(self.role, NetworkTransport(self.mailbox, self.party.asks))

    def learn(self, approved, patience=120.0):
        """Run an approved study to its end, as the command does; return families and tables."""
        contract, folder = approved.contract, self.party.disk.folder
        kept = RunFile(folder / f"run-{contract.digest.hex()[:8]}", contract.digest)
        renewing = Renewing(
            self.begin,
            lambda session: open_approved(session, contract, kept.study, kept.seen, kept.add),
            patience, wait=self.link.sleep, clock=self.world.monotonic,
        )  # fmt: skip
        with kept, renewing:
            study = renewing.first()
            learner, won = approved.steps(study.study), None
            while True:
                step = learner.send(won)
                if isinstance(step, FamilyTables):
                    tables = study.release(step)
                    break
                won = study.choose(step)
            members = [family.members for family in step.families]
            self.party.results = members, [np.asarray(table).tolist() for table in tables]
            kept.finish()
        return self.party.results


def key_pairs(draw, names):
    """Draw the static keys of all parties, by name."""
    return {name: KeyPair(draw.randbytes(32)) for name in names}
