"""The relay under attack by strangers and certified parties; its log, its list, renewed files."""

import shutil
import socket
import ssl
from threading import Thread
from time import monotonic

import pytest
from websockets.exceptions import ConnectionClosed

from tests.e2e.processes import Authority
from tests.protocols.relays import Stranger, frames_of, relaying, soon
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports import relay as module
from vertibayes_protocols.transports import relay_link, server_socket
from vertibayes_protocols.transports.frames import (
    AWAY,
    BUSY,
    HERE,
    MOST_BYTES,
    PIECE,
    TAKEN,
    Mark,
    write_frame,
)
from vertibayes_protocols.transports.proof import (
    ENTER,
    Entry,
    entry,
    hello,
    new_nonce,
    read_answer,
    read_challenge,
)
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.transports.tls import Certificates

STREAM = b"s" * 16


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def north(study):
    return study.certificates("north")


@pytest.fixture(scope="module")
def south(study):
    return study.certificates("south")


@pytest.fixture
def files(study, tmp_path):
    """The relay's files, which may be replaced."""
    for path in study.certificates("relay"):
        shutil.copy(path, tmp_path)
    return Certificates(*(tmp_path / n for n in ("root.crt", "relay.crt", "relay.key")))


def link(relay, party, certificates, peers=("north", "south"), **how):
    return connect(party, relay.address, peers, certificates=certificates, **how)


def works(relay, north, south):
    """Whether two parties reach each other."""
    with link(relay, "north", north) as one, link(relay, "south", south) as other:
        return one.deliver({"south": b"x"}, 5.0) == {} and other.receive(5.0) == ("north", b"x")


# ---- the log -------------------------------------------------------------------------------------


def test_who_connects_and_leaves_is_logged(files, north):
    with relaying(files) as (relay, log):
        with link(relay, "north", north):
            facts = soon(lambda: log.of("connected"))[0]
        left = soon(lambda: log.of("disconnected"))[0]
    assert facts["peer"] == "north" and facts["address"].startswith("127.0.0.1:")
    assert int(facts["certificate"], 16) and len(facts["until"]) == 10
    assert left == {"peer": "north", "address": facts["address"], "seconds": 0}


def test_without_certificates_addresses_are_logged_and_no_names():
    with relaying() as (relay, log):
        with link(relay, "north", None):
            pass
        assert [*soon(lambda: log.of("connected"))[0]] == ["address"]


@pytest.mark.parametrize("how", ["foreign", "expired", "none", "clear", "another", "junk"])
def test_who_is_refused_is_logged_with_the_reason(files, study, tmp_path, how):
    reasons = {
        "foreign": "unknown authority", "expired": "expired", "none": "no certificate",
        "clear": "no TLS", "another": "wrong name: connected in the name of north",
        "junk": server_socket.BROKEN,
    }  # fmt: skip
    with relaying(files) as (relay, log):
        host, port = relay.address.split(":")
        if how in ("clear", "junk"):
            with socket.create_connection((host, int(port))) as plain:
                secure = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                secure.check_hostname, secure.verify_mode = False, ssl.CERT_NONE
                end = plain if how == "clear" else secure.wrap_socket(plain)
                end.sendall(b"GET / HTTP/1.1\r\n\r\n")
                end.recv(1000)
                end.close()
        else:
            shown = study.certificates("other", "south") if how == "another" else None
            shown = study.certificates("old", "north", days=-0.5) if how == "expired" else shown
            foreign = Authority(tmp_path / "foreign").certificates("north")
            shown = shown or foreign._replace(root=study.root)
            with Stranger(relay, shown) as stranger:
                if how == "foreign":
                    stranger.credentials = stranger.credentials._replace(
                        certificate=foreign.certificate.read_bytes()
                    )
                    stranger.credentials = _der(stranger.credentials, foreign)
                assert _entered(stranger, how == "none") == reasons[how].partition(":")[0]
        refused = soon(lambda: log.of("refused"))[0]
    assert refused["reason"] == reasons[how]
    assert refused.get("peer") == ("south" if how == "another" else None)


def _der(credentials, certificates):
    content = ssl.PEM_cert_to_DER_cert(certificates.certificate.read_text())
    return credentials._replace(certificate=content)


def _entered(stranger, without):
    """Enter as north; `without` a certificate, though the relay's proof is read with one."""
    if not without:
        return stranger.enter("north")
    party_nonce = new_nonce()
    stranger.socket.send(hello(party_nonce))
    relay_nonce = read_challenge(stranger.socket.recv(5.0), party_nonce, stranger.credentials)
    stranger.socket.send(entry(Entry("north", STREAM, ENTER), party_nonce, relay_nonce, None))
    return read_answer(stranger.socket.recv(5.0), party_nonce, relay_nonce, stranger.credentials)


# ---- the list of revoked certificates, and renewed files -----------------------------------------


def test_a_revoked_certificate_ends_its_connection_and_enters_no_more(
    files, study, north, south, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    revoked = tmp_path / "revoked.txt"
    with relaying(files, revoked=revoked) as (relay, log):
        with link(relay, "south", south), link(relay, "north", north) as other:
            number = soon(lambda: [f for f in log.of("connected") if f["peer"] == "south"])[0]
            number = number["certificate"]
            revoked.write_text(f"{number}    # south, stolen\n")
            assert soon(lambda: log.of("disconnected"))[0]["peer"] == "south"
            assert log.of("refused")[0]["reason"] == f"revoked: south, certificate {number}"
            assert other.is_away("south") and not other.is_away("north")
        with pytest.raises(TransportError, match=r"does not take .* this party \(revoked\)"):
            link(relay, "south", south, timeout=0.5)
        assert works(relay, north, study.certificates("south")), "a renewed one enters"
        revoked.write_text("nobody\n")
        assert soon(lambda: log.of("list of revoked certificates not read"))
        with pytest.raises(TransportError, match="its log has the reason"):
            link(relay, "north", north, timeout=0.5)
        reasons = [facts["reason"] for facts in log.of("refused")]
        assert any("revoked.txt, line 1: a serial number has" in reason for reason in reasons)


def test_a_certificate_that_is_revoked_while_it_waits_does_not_enter(
    files, north, tmp_path, monkeypatch
):
    """The thief of a key waits until the party's own process is closed, by the list itself."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(module, "ALIVE_SECONDS", 1.0)
    revoked, answers = tmp_path / "revoked.txt", []
    with relaying(files, revoked=revoked) as (relay, log), Stranger(relay, north) as own:
        assert own.enter("north") == ""
        with Stranger(relay, north) as thief:
            enter = Thread(target=lambda: answers.append(thief.enter("north", stream=b"t" * 16)))
            enter.start()
            asked = monotonic()
            assert soon(lambda: monotonic() > asked + 0.3)
            revoked.write_text(log.of("connected")[0]["certificate"])
            enter.join()
        assert answers == ["revoked"] and not relay._inside


def test_a_certificate_that_expires_ends_its_connection(files, study, south, monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    short = study.certificates("short", "north", days=1.5 / 86_400)
    with relaying(files) as (relay, log), link(relay, "south", south) as other:
        with link(relay, "north", short):
            assert soon(lambda: log.of("refused"))[0]["reason"].startswith("expired: north, cert")
            assert soon(lambda: other.is_away("north")) and not other.is_away("south")


def test_a_renewed_certificate_of_the_relay_is_shown_without_a_restart(files, study, north):
    def shown(relay):
        context = ssl.create_default_context(cafile=study.root)
        context.check_hostname = False
        with socket.create_connection(relay.address.split(":")) as plain:
            with context.wrap_socket(plain, server_hostname="relay") as secure:
                return secure.getpeercert()["serialNumber"]

    with relaying(files) as (relay, log):
        before = shown(relay)
        fresh = study.certificates("fresh", "relay")
        shutil.copy(fresh.certificate, files.certificate)
        assert shown(relay) == before, "the key is still the old one"
        assert len(log.of("certificates not read")) == 1
        shutil.copy(fresh.key, files.key)
        assert shown(relay) != before
        with link(relay, "north", north):
            assert soon(lambda: log.of("connected"))


# ---- strangers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"", b"\x16", b"GET / HTTP/1.1\r\nHost: "])
def test_a_stranger_that_says_little_is_refused_in_time_and_keeps_nobody_out(
    files, north, south, monkeypatch, said
):
    with relaying(None if said.startswith(b"GET") else files) as (relay, log):
        monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 1.0)
        monkeypatch.setattr(server_socket, "HANDSHAKE_SECONDS", 1.0)
        with socket.create_connection(relay.address.split(":")) as stranger:
            stranger.sendall(said)
            shown = (None, None) if said.startswith(b"GET") else (north, south)
            assert works(relay, *shown)
            stranger.settimeout(10.0)
            assert stranger.recv(1) == b""
        assert soon(lambda: "timeout" in [facts["reason"] for facts in log.of("refused")])


def test_of_many_strangers_the_longest_waiting_goes(files, north, south, monkeypatch):
    monkeypatch.setattr(module, "MOST_STRANGERS", 5)
    with relaying(files) as (relay, _):
        strangers = [socket.create_connection(relay.address.split(":")) for _ in range(20)]
        assert works(relay, north, south)
        strangers[0].settimeout(5.0)
        assert strangers[0].recv(1) == b""
        for stranger in strangers:
            stranger.close()


def say_and_listen(stranger, message):
    stranger.socket.send(message)
    while True:
        stranger.socket.recv(5.0)


@pytest.mark.parametrize("entered", [False, True])
@pytest.mark.parametrize("text", [False, True])
def test_a_message_that_is_too_large_or_a_text_ends_its_connection_alone(
    files, north, south, entered, text
):
    with relaying(files) as (relay, _):
        with Stranger(relay, north) as stranger:
            if entered:
                assert stranger.enter("north") == ""
            with pytest.raises(ConnectionClosed):
                say_and_listen(stranger, "x" if text else bytes(MOST_BYTES + 1))
        assert works(relay, north, south)


def test_nothing_is_decompressed(files, north):
    """A megabyte of zeros would be a kilobyte; the client is ready to send it so."""
    with relaying(files) as (relay, _), Stranger(relay, north) as stranger:
        assert stranger.socket.protocol.extensions == []


def test_fragments_without_end_are_a_message_that_is_too_large(files, north, south):
    with relaying(files) as (relay, _):
        with Stranger(relay, north) as stranger, pytest.raises(ConnectionClosed):
            stranger.socket.send(bytes(1 << 12) for _ in range(10_000))
        assert works(relay, north, south)


def test_a_proof_that_was_recorded_lets_nobody_in(files, north):
    """The control is the connection in which it was made."""
    with relaying(files) as (relay, log):
        with Stranger(relay, north) as first:
            assert first.enter("north") == ""
        with Stranger(relay, north) as thief:
            thief.socket.send(hello(new_nonce()))
            thief.socket.recv(5.0)
            thief.socket.send(first.sent)
            assert b"wrong signature" in thief.socket.recv(5.0)
        assert soon(lambda: log.of("refused"))[0]["reason"] == "wrong signature"


# ---- certified parties ---------------------------------------------------------------------------


def piece(receiver, index=0, count=1, content=b"x"):
    return write_frame(PIECE, receiver, Mark(STREAM, 0, index, count), content)


def test_the_relay_itself_writes_who_has_sent_a_frame(files, north, south):
    with relaying(files) as (relay, _), link(relay, "south", south) as other:
        with Stranger(relay, north) as stranger:
            assert stranger.enter("north") == ""
            stranger.socket.send(piece("south"))
            assert other.receive(5.0) == ("north", b"x")
            assert next(frames_of(stranger))[:2] == (TAKEN, "south")


def test_what_only_the_relay_says_is_passed_on_for_nobody(files, north, south):
    with relaying(files) as (relay, log), Stranger(relay, south) as other:
        assert other.enter("south") == ""
        with Stranger(relay, north) as stranger:
            assert stranger.enter("north") == ""
            for kind in (AWAY, BUSY):
                stranger.socket.send(write_frame(kind, "south", Mark(STREAM, 0, 0, 1)))
            stranger.socket.send(write_frame(HERE, "south"))
            stranger.socket.send(b"junk")
            stranger.socket.send(piece("south"))
            assert next(frames_of(other)).kind == PIECE
        refused = soon(lambda: len(log.of("packet refused")) == 4 and log.of("packet refused"))
        assert {facts["peer"] for facts in refused} == {"north"}


def test_what_waits_for_a_receiver_that_does_not_read_is_limited(
    files, study, north, south, monkeypatch
):
    """Its sender is told to send again; others, and what others send to it, go on."""
    monkeypatch.setattr(module, "MOST_FROM", 1 << 19)
    third = study.certificates("third")
    with relaying(files) as (relay, _), Stranger(relay, south, max_queue=1) as deaf:
        assert deaf.enter("south") == ""
        with Stranger(relay, north) as stranger, link(relay, "third", third) as other:
            assert stranger.enter("north") == ""
            for index in range(240):  # 15 MiB
                stranger.socket.send(piece("south", index, 240, bytes(1 << 16)))
            assert next(frames_of(stranger)).kind == BUSY
            assert relay._waiting.total() <= (1 << 19) + MOST_BYTES
            stranger.socket.send(piece("third"))
            assert other.receive(10.0) is not None
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(relay_link, "ANSWER_SECONDS", 0.5)
                assert other.deliver({"south": b"unread"}, 0.0)["south"].party == "south"
        assert soon(lambda: not relay._inside.get("north"))


def test_a_party_whose_pieces_nobody_reads_fills_its_own_share_alone(
    files, study, north, south, monkeypatch
):
    """It sends to several receivers that are its own processes; others' pieces pass."""
    monkeypatch.setattr(module, "MOST_WAITING", 1 << 22)
    with relaying(files) as (relay, _), Stranger(relay, north) as stranger:
        deaf = [Stranger(relay, north, max_queue=1) for _ in range(4)]
        for index, one in enumerate(deaf):
            assert one.enter(f"north~{index:016x}", stream=b"%016x" % index) == ""
        assert stranger.enter("north") == ""
        for index in range(400):  # 25 MiB
            name = f"north~{index % 4:016x}"
            stranger.socket.send(piece(name, index, 400, bytes(1 << 16)))
        assert next(frames_of(stranger)).kind == BUSY
        assert relay._waiting["north"] <= (1 << 22) // module.SHARE + MOST_BYTES
        with link(relay, "south", south) as other:
            assert other.deliver({"south": b"x"}, 5.0) == {}
        for one in deaf:
            one.__exit__(None, None, None)
    assert not relay._waiting.total()


def test_the_processes_of_one_party_are_limited(files, north, monkeypatch):
    monkeypatch.setattr(module, "MOST_PROCESSES", 2)
    with relaying(files) as (relay, _):
        strangers = [Stranger(relay, north) for _ in range(3)]
        said = [one.enter(f"north~{i:016x}") for i, one in enumerate(strangers)]
        assert said == ["", "", "too many processes"]
        for one in strangers:
            one.__exit__(None, None, None)


@pytest.mark.parametrize("name", ["relay", "server", "", "a b", "north~1", "x" * 64])
def test_a_name_that_no_party_can_have_is_refused(name):
    with relaying() as (relay, _), Stranger(relay) as stranger:
        assert stranger.enter(name) == "wrong name"
