"""Parties of two versions of the protocols: both ends name both versions, and read nothing else."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic, time

import pytest

from tests.protocols.network import QUICK, Network, Parties, identities
from tests.protocols.small import data_of
from tests.protocols.test_attacks_on_mail import ListLink
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_protocols import RELEASE
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.seal import HEADER, HELLO, Seal, read_header
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.control import VersionsDifferError, compare_versions
from vertibayes_protocols.transports.mailbox import Mailbox
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.wire import VERSION

DATA = data_of(a="xy", b="z")
PARTIES = ("a", "b", DEALER, ANALYST)
KNOWN = identities(*PARTIES)
SESSION = bytes(range(16))
SECONDS = 3.0


def of_version(version, *parties):
    """Return the identities of some parties, which speak another version."""
    return {party: replace(KNOWN[party], version=version) for party in parties}


def failed(parties, star=False):
    """Begin a session that cannot begin; return its error, after at most 3 s."""
    chosen = ("a", "b") if star else ("a", "b", DEALER)
    start = monotonic()
    with pytest.raises(Exception, match="install the same release") as caught:
        NetworkTransport(parties.mailbox, chosen, star=star, most_absent=int(star))
    assert monotonic() - start < SECONDS
    return str(caught.value)


@pytest.mark.parametrize("version", [0, VERSION - 1, VERSION + 1, 65535])
@pytest.mark.parametrize("other", [("a",), (DEALER,), ("a", "b", DEALER), (ANALYST,)])
def test_both_ends_name_both_versions(version, other):
    pinned = of_version(version, *other)
    with Parties(DATA, pinned=pinned) as parties:
        error = failed(parties)
        assert f"version {VERSION} " in error or f"version {VERSION}:" in error
        assert f"version {version}" in error or "an older one (vertibayes 0.1.0 or older)" in error
        for party in other if ANALYST not in other else ("a", "b", DEALER):
            heard = heard_by(parties, party)
            assert f"version {VERSION}" in heard and "install the same release" in heard


def heard_by(parties, party):
    """Return what a party notes: a session that ended so, or a packet that it refused."""
    end = monotonic() + SECONDS
    while monotonic() < end:
        noted = [str(error) for error in parties.mailboxes[party].refused]
        noted += [str(parties.ended[party].get())] if not parties.ended[party].empty() else []
        for text in noted:
            if "install the same release" in text:
                return text
    raise AssertionError(f"{party} has noted only {noted}")


def test_parties_of_one_version_begin_a_session():
    """The control: the version alone makes the difference."""
    with Parties(DATA, pinned=of_version(VERSION + 1, *PARTIES)) as parties, parties.session():
        pass


def test_a_star_session_names_both_versions():
    with Parties(DATA, pinned=of_version(0, "a")) as parties:
        error = failed(parties, star=True)
    assert error == (
        f"a: analyst speaks version {VERSION} of the protocols (vertibayes {RELEASE}), a an older "
        "one (vertibayes 0.1.0 or older): install the same release at all parties"
    )


def hello(version, text, sender=ANALYST):
    return Seal(replace(KNOWN[sender], version=version), SESSION).greet("a", text)


@pytest.mark.parametrize("text", [b"", b"no roster", bytes(1000)])
def test_nothing_is_read_before_the_versions_are_compared(text):
    """The text of a later version's hello may be anything."""
    mailbox = Mailbox(ListLink([(ANALYST, hello(VERSION + 1, text))]), KNOWN["a"])
    mailbox.receive((), 0.0)
    (error,) = mailbox.refused
    assert isinstance(error, VersionsDifferError) and error.party == ANALYST
    assert mailbox.take_hello([ANALYST]) is None


@pytest.mark.parametrize("text", [b"", b"no roster", bytes(1000)])
def test_nothing_is_read_in_a_session_that_has_begun(text):
    """The hello of a party of another version, in a session of this analyst."""
    seal = Seal(KNOWN[ANALYST], SESSION)
    connection = Connection(seal, PARTIES, ANALYST, QUICK, time_of_day=time)
    packet = Seal(replace(KNOWN["a"], version=VERSION + 1), SESSION).greet(ANALYST, text)
    with pytest.raises(VersionsDifferError, match=f"a version {VERSION + 1}"):
        connection.receive("a", packet)


def test_the_answer_is_a_hello_of_the_same_text_and_an_abort():
    """What release 0.1.0 reads: the same session and parties, and then why it ends."""
    link = SentLink([(ANALYST, (packet := hello(0, b"the roster")))])
    greeting, abort = said(Mailbox(link, KNOWN["a"]))[ANALYST]
    analyst = Seal(replace(KNOWN[ANALYST], version=0), SESSION)
    assert read_header(greeting, "a").version == VERSION
    assert analyst.welcome("a", greeting) == b"the roster"
    assert read_header(packet, ANALYST).session == read_header(abort, "a").session == SESSION


def test_a_hello_of_another_version_is_answered_once_and_noted_once_per_session():
    packets = [(ANALYST, hello(0, b"")), (ANALYST, hello(0, b"")), ("b", hello(0, b"", "b"))]
    link = SentLink(packets)
    mailbox = Mailbox(link, KNOWN["a"])
    assert {party: len(sent) for party, sent in said(mailbox).items()} == {ANALYST: 2, "b": 2}
    assert len(mailbox.refused) == 1


def test_a_hello_of_another_version_does_not_disturb_a_session():
    """It neither ends it nor waits for its turn."""
    link = SentLink([(ANALYST, hello(0, b""))])
    mailbox = Mailbox(link, KNOWN["a"])
    mailbox.begin(bytes(16), "b")
    assert mailbox.receive((bytes(16),), 0.0) is None
    assert mailbox.take_hello([ANALYST]) is None and said(mailbox)[ANALYST]


def test_a_hello_without_a_key_is_refused():
    packet = replace(KNOWN[ANALYST], version=0).seal_statically(
        "a", HELLO, SESSION, b"short", Mailbox(SentLink(), KNOWN["a"]).randomness
    )
    link = SentLink([(ANALYST, packet)])
    mailbox = Mailbox(link, KNOWN["a"])
    mailbox.receive((), 0.0)
    assert [type(error) for error in mailbox.refused][-1] is MalformedMessageError
    assert not said(mailbox)


@pytest.mark.parametrize("version", [0, VERSION - 1, VERSION + 1])
def test_who_carries_packets_cannot_change_the_version(version):
    """Neither to end a session by it, nor to hide that two parties differ."""
    packet = hello(VERSION, b"the roster")
    changed = packet[:5] + version.to_bytes(2, "little") + packet[7:]
    assert read_header(changed, ANALYST).version == version
    mailbox = Mailbox(SentLink([(ANALYST, changed)]), KNOWN["a"])
    mailbox.receive((), 0.0)
    assert [type(error) for error in mailbox.refused] == [MalformedMessageError]
    with pytest.raises(MalformedMessageError, match="does not open"):
        Seal(KNOWN["a"], SESSION).welcome(ANALYST, changed)


def test_a_carrier_that_changes_versions_ends_in_another_error():
    def change(sender, receiver, packet):
        is_hello = packet[4] == HELLO and sender == "a" and receiver == ANALYST
        return packet[:5] + bytes(3) + packet[8:] if is_hello else packet

    with (
        Parties(DATA, Network(change)) as parties,
        pytest.raises(MalformedMessageError, match="a: a hello that does not open"),
    ):
        parties.session()


def test_the_header_of_release_0_1_0_has_version_0():
    """Its format is "<4sB3x16s16s16sQ32s": the pad bytes are where the version is now."""
    packet = hello(0, b"")
    assert HEADER.size == 96 and packet[5:8] == bytes(3)
    with pytest.raises(VersionsDifferError, match=r"an older one \(vertibayes 0\.1\.0 or older\)"):
        compare_versions(KNOWN["a"], ANALYST, packet)


class SentLink(ListLink):
    """Gives a list of packets, and keeps those that are delivered."""

    def __init__(self, packets=()):
        super().__init__(packets)
        self.packets_to = {}

    def deliver(self, packets, patience):
        for party, packet in packets.items():
            self.packets_to.setdefault(party, []).append(packet)
        return {}


def said(mailbox):
    """Take in all packets; return what the mailbox has answered, by address."""
    while mailbox.link.packets:
        mailbox.receive((), 0.0)
    for thread in mailbox._farewells:
        thread.join()
    return mailbox.link.packets_to
