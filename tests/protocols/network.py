"""Parties in threads, on a network in memory whose packets can be read, changed, lost, repeated."""

from __future__ import annotations

import queue
import threading
import time

import numpy as np

from tests.randomness import SeededRandomness
from vertibayes.counting.secure import SecureCounter
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.parties import Watch
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.run_watch import UNWATCHED
from vertibayes_protocols.seal import Identity
from vertibayes_protocols.session import Session
from vertibayes_protocols.transports.mailbox import Mailbox, Patience, party_of
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.transports.serving import answer

QUICK = Patience(silent=20.0, gone=0.3, probe=0.1, hello=5.0)


class Killed(BaseException):
    """Ends a party's thread as a signal ends a process: it tells nobody."""


def hide_killed(args, hook=threading.excepthook):
    """Report what ended a thread, except that its party was killed."""
    if args.exc_type is not Killed:
        hook(args)


threading.excepthook = hide_killed


class Network:
    """Carries packets between parties.

    `change` is called with (sender, receiver, packet) and returns what is delivered: the packet,
    None if it is lost, or a list of packets.
    """

    def __init__(self, change=lambda sender, receiver, packet: packet):
        self.change = change
        self.boxes = {}
        self.paused = set()
        self.seen = []
        self.lock = threading.Lock()

    def link(self, party):
        self.boxes[party] = queue.SimpleQueue()
        return MemoryLink(self, party)

    def kill(self, party):
        """Take a party off the network; it ends where it next sends or waits."""
        box = self.boxes.pop(party, None)
        if box is not None:
            box.put(Killed())

    def wait_while_paused(self, party):
        while party in self.paused and party in self.boxes:
            time.sleep(0.01)

    def carry(self, sender, receiver, packet):
        self.wait_while_paused(sender)
        if sender not in self.boxes:
            raise Killed
        if receiver in self.paused:
            return False
        with self.lock:
            self.seen.append((sender, receiver, packet))
            found = self.change(sender, receiver, packet)
        if sender not in self.boxes:
            raise Killed
        for one in [] if found is None else found if isinstance(found, list) else [found]:
            box = self.boxes.get(receiver)
            if box is None:
                return False
            box.put((sender, one))
        return receiver in self.boxes


class MemoryLink:
    def __init__(self, network, party):
        self.network, self.party, self.box = network, party, network.boxes[party]

    def wake(self):
        self.box.put(None)

    def is_away(self, address):
        return address not in self.network.boxes

    def deliver(self, packets, patience):
        failed, end = {}, time.monotonic() + (patience or 0.0)
        for receiver, packet in packets.items():
            while not self.network.carry(self.party, receiver, packet):
                if time.monotonic() >= end:
                    failed[receiver] = PeerGoneError(party_of(receiver), "cannot be reached")
                    break
                time.sleep(0.02)
        return failed

    def receive(self, timeout):
        try:
            found = self.box.get(timeout=timeout)
        except queue.Empty:
            found = None
        self.network.wait_while_paused(self.party)
        if isinstance(found, Killed):
            raise found
        return found

    def close(self):
        self.network.boxes.pop(self.party, None)


def identities(*parties, seed=b"keys"):
    source = SeededRandomness(seed)
    keys = {party: KeyPair.generate(source) for party in parties}
    public = {party: pair.public for party, pair in keys.items()}
    others = lambda party: {p: key for p, key in public.items() if p != party}  # noqa: E731
    return {party: Identity(party, keys[party], others(party)) for party in parties}


class Ends(Watch):
    """Puts how a session has ended into a queue."""

    def __init__(self, errors):
        self.errors = errors

    def ended(self, error):
        self.errors.put(error)


class Parties:
    """Sites and a dealer, each a thread that answers sessions; the analyst is the caller."""

    def __init__(
        self, data, network=None, patience=QUICK, memories=None, pinned=None,
        analysts=(ANALYST,), policy=FREE, watches=None,
    ):  # fmt: skip
        self.network = network or Network()
        self.sites = tuple(data)
        self.known = {**identities(*data, DEALER, *analysts), **(pinned or {})}
        self.patience, self.policy, self.watches = patience, policy, watches
        self.analysts = {analyst: self.known[analyst].keys.public for analyst in analysts}
        self.ended = {party: queue.SimpleQueue() for party in (*data, DEALER)}
        self.mailboxes, self.roles, self.threads, self.died = {}, {}, {}, {}
        self.memories = memories or {}
        for party in (*data, DEALER):
            self.start(party, data.get(party))
        self.mailbox = self.mailbox_at(analysts[0])

    def mailbox_at(self, address, *, link=None):
        """Return the mailbox of a new process at an address."""
        link = link or self.network.link(address)
        self.mailboxes[address] = Mailbox(link, self.known[party_of(address)], self.patience)
        return self.mailboxes[address]

    def start(self, party, columns=None):
        """Start a party, or start it again."""
        mine = self.known[party]
        peers = {p: key for p, key in mine.peers.items() if p not in self.analysts}
        if party == DEALER:
            role = DealerRole(party, mine.keys, peers, policy=self.policy)
        else:
            role = SiteRole(party, columns, mine.keys, peers, policy=self.policy)
            if party in self.memories:
                role.memory = self.memories[party]
        self.roles[party] = role
        mailbox = self.mailbox_at(party)
        thread = threading.Thread(target=self._live, args=(party, mailbox, role), daemon=True)
        self.threads[party] = thread
        thread.start()

    def _live(self, party, mailbox, role):
        try:
            watches = self.watches or (lambda *_: Ends(self.ended[party]))
            answer(mailbox, role, self.analysts, KINDS, watches=watches)
        except Killed:
            pass
        except BaseException as error:
            self.died[party] = error
            raise

    def session(self, watch=UNWATCHED, mailbox=None):
        mailbox = mailbox or self.mailbox
        transport = NetworkTransport(mailbox, (*self.sites, DEALER), watch)
        peers = {p: k for p, k in mailbox.identity.peers.items() if p not in self.analysts}
        role = AnalystRole(mailbox.party, public_keys=peers)
        return Session(role, transport)

    def errors(self, *parties, timeout=10.0):
        """Return how the next session of each party ended."""
        return {party: self.ended[party].get(timeout=timeout) for party in parties}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for party in list(self.network.boxes):
            self.network.kill(party)
        for thread in self.threads.values():
            thread.join(5)
        assert not any(thread.is_alive() for thread in self.threads.values())
        assert not self.died


def counter_of(parties, mailbox=None, **options):
    """Open a study in a new session of the analyst; return the session and the study's counter."""
    session = parties.session(mailbox=mailbox)
    study = open_study(session, parties.sites, DEALER, block_rows=16, **options)
    return session, SecureCounter(study)


def same_tables(ours, theirs):
    return all(map(np.array_equal, ours, theirs)) and len(ours) == len(theirs)
