"""What a stranger, one malicious peer, or whoever carries packets can do to a party's mail."""

from __future__ import annotations

import time

from tests.protocols.network import QUICK, MemoryLink, Network, Parties, identities
from tests.protocols.small import data_of
from vertibayes.counting.secure import SecureCounter
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.seal import DATA, HEADER, HELLO, MAGIC, UNKNOWN, Seal
from vertibayes_protocols.session import Go
from vertibayes_protocols.transports import network
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.mailbox import AGAIN_SECONDS, HELLO_BYTES, MOST_EARLY, Mailbox
from vertibayes_protocols.variables import Family
from vertibayes_protocols.wire import VERSION, Envelope, encode, header, name_digest

DATA_OF = data_of(a="xy", b="z", c="w")
KNOWN = identities("a", "b", ANALYST)


def junk(kind, sender, receiver, size=0, session=bytes(16)):
    """Make a packet that anyone can make: a header, and bytes that open with no key."""
    names = name_digest(sender), name_digest(receiver)
    return HEADER.pack(MAGIC, kind, VERSION, session, *names, 0, bytes(32)) + bytes(16 + size)


class ListLink:
    """Gives a list of packets; a delivery takes as long as its receiver likes."""

    def __init__(self, packets=(), seconds=0.0):
        self.packets, self.seconds, self.sent = list(packets), seconds, []

    def receive(self, timeout):
        if self.packets:
            return self.packets.pop(0)
        time.sleep(timeout or 0)
        return None

    def deliver(self, packets, patience):
        time.sleep(self.seconds)
        self.sent += packets
        return {}


# ---- memory, before anything is opened -----------------------------------------------------------


def test_early_hellos_take_no_more_memory_than_the_mail_box_may():
    """64 are kept, of any size: 64 packets of 1 GiB are."""
    hellos = [("b", junk(HELLO, "b", "a", 1 << 20, bytes([i]) * 16)) for i in range(64)]
    mailbox = Mailbox(ListLink(hellos), KNOWN["a"])
    while mailbox.link.packets:
        mailbox.receive((), 0.0)
    held = sum(len(mail.packet) for mail in mailbox._early)
    assert held <= 1 << 20, f"{held} bytes that nobody has opened"


def test_one_peers_hellos_do_not_push_out_the_analysts():
    analyst = Seal(KNOWN[ANALYST], bytes(16)).greet("a", b"roster")
    forged = [("b", junk(HELLO, "b", "a", session=bytes([i]) * 16)) for i in range(MOST_EARLY)]
    mailbox = Mailbox(ListLink([(ANALYST, analyst), *forged]), KNOWN["a"])
    while mailbox.link.packets:  # the party is in a session, or computes
        mailbox.receive([b"s" * 16], 0.0)
    assert mailbox.take_hello([ANALYST]) is not None


def kept_of(*hellos):
    mailbox = Mailbox(ListLink([("b", hello) for hello in hellos]), KNOWN["a"])
    while mailbox.link.packets:
        mailbox.receive((), 0.0)
    return [mail.packet for mail in mailbox._early]


def test_hellos_of_a_pinned_peer_are_kept_up_to_a_number_and_a_size():
    seals = [Seal(KNOWN["b"], bytes([i]) * 16) for i in range(MOST_EARLY + 3)]
    assert len(kept_of(*(seal.greet("a", b"roster") for seal in seals))) == MOST_EARLY
    assert kept_of(seals[0].greet("a", bytes(HELLO_BYTES))) == []


def test_a_hello_that_does_not_open_is_not_kept():
    hello = Seal(KNOWN["b"], bytes(16)).greet("a", b"roster")
    assert kept_of(hello) == [hello], "the control"
    assert kept_of(hello[:-1] + bytes([hello[-1] ^ 1])) == []


# ---- time ----------------------------------------------------------------------------------------


def test_a_message_of_no_session_does_not_hold_a_party_up():
    """The answer ("I know of no such session") waits for a receipt, which its sender withholds:
    5 s by way of a relay, for each packet of 128 bytes; no time-out of the session is looked at."""
    packets = [("b", junk(DATA, "b", "a", session=bytes([i]) * 16)) for i in range(20)]
    mailbox = Mailbox(ListLink(packets, seconds=0.1), KNOWN["a"])
    start = time.monotonic()
    mailbox.receive([b"s" * 16], 0.05)
    assert time.monotonic() - start < 0.5, "20 packets, 20 receipts"


def test_an_answer_that_may_be_lost_is_given_again():
    """To who goes on in a session that is unknown here, and not for every packet."""
    times = iter(range(1000))  # some time passes whenever the mailbox asks for it
    link = ListLink([("b", junk(DATA, "b", "a", session=b"s" * 16)) for _ in range(20)])
    mailbox = Mailbox(link, KNOWN["a"], clock=lambda: AGAIN_SECONDS / 20 * next(times))
    while link.packets:
        mailbox.receive((), 0.0)
    assert 2 <= len(link.sent) < 10


def test_a_flood_of_refused_packets_does_not_stop_the_clock():
    """`Mailbox.receive` looks at its time-out only where no packet waits."""
    ends = time.monotonic() + 2.0

    class Flood(ListLink):
        def receive(self, timeout):
            if time.monotonic() < ends:
                return "stranger", b"x"
            return super().receive(timeout)

    start = time.monotonic()
    Mailbox(Flood(), KNOWN["a"]).receive([b"s" * 16], 0.05)
    assert time.monotonic() - start < 1.0


# ---- who is blamed -------------------------------------------------------------------------------


def test_a_chain_that_is_too_long_is_not_its_next_members_fault(monkeypatch):
    """b tells a a chain of 2^31 messages, which may be; a's next would be one longer."""

    class Liar(Connection):
        def _pack(self, receiver, body):
            if receiver == "a":
                self._depth = (1 << 31) - 1
            return super()._pack(receiver, body)

    def connection(seal, *rest, **options):
        return (Liar if seal.identity.party == "b" else Connection)(seal, *rest, **options)

    with Parties({"a": DATA_OF["a"], "b": DATA_OF["b"]}) as parties:
        monkeypatch.setattr(network, "Connection", connection)
        counter = SecureCounter(open_study(parties.session(), parties.sites, DEALER, block_rows=16))
        assert counter.tables([Family("x", ("z",))])[0].sum() == 40


def test_a_hello_whose_receipt_was_lost_ends_nothing():
    """The packet came, its receipt did not: its sender greets again."""
    lost = []

    class Unsure(Network):
        def carry(self, sender, receiver, packet):
            found = super().carry(sender, receiver, packet)
            if (sender, receiver) == ("a", "b") and not lost:
                lost.append(packet)
                time.sleep(QUICK.gone)
                return False
            return found

    with Parties({"a": DATA_OF["a"], "b": DATA_OF["b"]}, Unsure()) as parties:
        counter = SecureCounter(open_study(parties.session(), parties.sites, DEALER, block_rows=16))
        assert counter.tables([Family("x", ("z",))])[0].sum() == 40 and lost


# ---- as a whole ----------------------------------------------------------------------------------


def test_a_malicious_site_does_not_stop_others_with_packets_of_no_session(monkeypatch):
    """c sends b packets that open with no key, and gives no receipts; b is blamed for silence."""

    class Silent(MemoryLink):
        def deliver(self, packets, patience):
            if patience is not None and "c" in packets and packets["c"][4] == UNKNOWN:
                time.sleep(0.5)  # by way of a relay 5 s
            return super().deliver(packets, patience)

    monkeypatch.setattr("tests.protocols.network.MemoryLink", Silent)
    with Parties(DATA_OF, patience=QUICK._replace(silent=3.0)) as parties:
        session = parties.session()
        counter = SecureCounter(open_study(session, parties.sites, DEALER, block_rows=16))
        for number in range(20):
            packet = junk(DATA, "c", "b", session=bytes([number]) * 16)
            parties.network.boxes["b"].put(("c", packet))
        assert counter.tables([Family("x", ("z",))])[0].sum() == 40


def test_the_envelope_that_the_liar_sends_is_one_that_may_be():
    """So the chain is within what `wire` takes, and its receiver's answer is not."""
    body = encode(Go(True))
    assert header(Envelope(bytes(16), "b", "a", 0, 1 << 31), body)
