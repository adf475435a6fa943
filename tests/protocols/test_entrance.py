"""The relay's end of connections: its log, its list of revoked certificates, renewed files."""

import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.e2e.processes import Authority
from vertibayes_protocols.deployment.log import line
from vertibayes_protocols.transports import entrance as module
from vertibayes_protocols.transports import tls
from vertibayes_protocols.transports.entrance import Entrance, LimitedLog
from vertibayes_protocols.transports.tls import Certificates, HandshakeError, secure_party, shown_by

ADDRESS = "127.0.0.1", 4711


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Wait briefly for ends that never hang up."""
    monkeypatch.setattr(tls, "HANG_UP_SECONDS", 0.05)


class Log(list):
    """The events that were logged; each must fit into a line."""

    def __call__(self, event, **facts):
        assert line("relay", event, **facts).startswith(f"relay {event} ")
        self.append((event, facts))

    def of(self, event):
        return [facts for kind, facts in self if kind == event]


@pytest.fixture
def study(tmp_path):
    return Authority(tmp_path / "study")


@pytest.fixture
def relay(study, tmp_path):
    """The relay's files, which may be replaced."""
    for path in study.certificates("relay"):
        shutil.copy(path, tmp_path)
    return Certificates(*(tmp_path / n for n in ("root.crt", "relay.crt", "relay.key")))


@contextmanager
def entered(entrance, certificates):
    """Connect as a party; yield its end, and what the entrance returns."""
    near, far = socket.socketpair()
    near.settimeout(5.0)
    with near, far, ThreadPoolExecutor(1) as pool:
        let_in = pool.submit(entrance.enter, far, ADDRESS)
        try:
            with secure_party(near, certificates) as connected:
                yield connected, let_in.result()
        finally:
            if (inside := let_in.result()) is not None:
                inside.connection.close()


def test_who_connects_and_leaves_is_logged(study, relay):
    log, north = Log(), study.certificates("north")
    entrance = Entrance(relay, tell=log)
    with entered(entrance, north) as (_, inside):
        entrance.leave(inside)
    (event, facts), (after, left) = log
    assert (event, facts["peer"], facts["address"]) == ("connected", "north", "127.0.0.1:4711")
    assert facts["certificate"] == inside.shown.number and len(facts["until"]) == 10
    assert (after, left) == (
        "disconnected", {"peer": "north", "address": "127.0.0.1:4711", "seconds": 0},
    )  # fmt: skip


def test_without_certificates_addresses_are_logged_and_no_names():
    log = Log()
    entrance = Entrance(None, tell=log)
    near, far = socket.socketpair()
    with near, far:
        entrance.leave(entrance.enter(far, ADDRESS))
    assert log.of("connected") == [{"address": "127.0.0.1:4711"}]


@pytest.mark.parametrize("foreign", [True, False])
def test_who_is_refused_is_logged_with_the_reason(study, relay, tmp_path, foreign):
    log = Log()
    entrance = Entrance(relay, tell=log)
    shown = study.certificates("old", "north", days=-0.5)
    if foreign:
        shown = Authority(tmp_path / "other").certificates("north")._replace(root=study.root)
    with entered(entrance, shown) as (_, inside):
        assert inside is None
    reason = "unknown authority" if foreign else "expired"
    assert log == [("refused", {"address": "127.0.0.1:4711", "reason": reason})]


def test_a_revoked_certificate_is_refused_at_the_next_handshake(study, relay, tmp_path):
    log, revoked = Log(), tmp_path / "revoked.txt"
    north, south = study.certificates("north"), study.certificates("south")
    entrance = Entrance(relay, revoked, log)
    with entered(entrance, north) as (_, inside):
        number = inside.shown.number
    revoked.write_text(f"{number}    # north, stolen\n")
    with entered(entrance, north) as (connected, inside):
        assert inside is None and connected.recv(1) == b""
    assert log.of("refused")[0]["reason"] == f"revoked: north, certificate {number}"
    with entered(entrance, south) as (_, inside):
        assert inside.party == "south"
    with entered(entrance, study.certificates("north")) as (_, inside):  # a renewed one
        assert inside.party == "north"
    revoked.unlink()
    with entered(entrance, north) as (_, inside):
        assert inside is not None


def test_an_open_connection_ends_when_its_certificate_is_revoked(study, relay, tmp_path):
    log, revoked = Log(), tmp_path / "revoked.txt"
    entrance = Entrance(relay, revoked, log)
    with (
        entered(entrance, study.certificates("north")) as (north, inside),
        entered(entrance, study.certificates("south")) as (south, _),
    ):
        entrance.send_away()
        assert log.of("refused") == []
        revoked.write_text("nobody\n")
        entrance.send_away()
        assert len(log.of("list of revoked certificates not read")) == 1
        revoked.write_text(f"{inside.shown.number}\n")
        for _ in range(3):
            entrance.send_away()
        assert len(log.of("refused")) == 1
        assert north.recv(1) == b""
        south.settimeout(0.05)
        with pytest.raises(TimeoutError):
            south.recv(1)


def test_a_list_that_cannot_be_read_lets_nobody_in(study, relay, tmp_path):
    log, revoked = Log(), tmp_path / "revoked.txt"
    revoked.write_text("north\n")
    with entered(Entrance(relay, revoked, log), study.certificates("north")) as (_, inside):
        assert inside is None
    assert "revoked.txt, line 1: a serial number has" in log.of("refused")[0]["reason"]


def test_a_renewed_certificate_of_the_relay_is_shown_without_a_restart(study, relay):
    log, north = Log(), study.certificates("north")
    entrance = Entrance(relay, tell=log)

    def shown():
        with entered(entrance, north) as (connected, _):
            return shown_by(connected, "relay").serial

    before = shown()
    fresh = study.certificates("fresh", "relay")
    shutil.copy(fresh.certificate, relay.certificate)
    assert shown() == before, "the key is still the old one"
    assert len(log.of("certificates not read")) == 1
    shutil.copy(fresh.key, relay.key)
    assert shown() != before
    assert log.of("refused") == []


def test_a_stranger_that_sends_nothing_is_refused_in_time(relay, monkeypatch):
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.05)
    log = Log()
    near, far = socket.socketpair()
    with near, far:
        assert Entrance(relay, tell=log).enter(far, ADDRESS) is None
    assert log.of("refused")[0]["reason"] == "timeout"


def test_a_party_that_meets_another_relay_says_so(study, relay, tmp_path):
    log = Log()
    other = Authority(tmp_path / "other").certificates("north")
    with pytest.raises(HandshakeError, match="no certificate of this study's relay"):
        with entered(Entrance(relay, tell=log), other):
            pass
    assert log.of("refused") == [{"address": "127.0.0.1:4711", "reason": "unknown authority"}]


# ---- a log that nobody fills ---------------------------------------------------------------------


@pytest.fixture
def clock():
    return [0.0]


def test_a_stranger_does_not_fill_the_log(clock):
    """The control is the log itself: it has as many lines as the stranger likes."""
    log, control = Log(), Log()
    limited = LimitedLog(log, lambda: clock[0])
    for _ in range(8640):  # one attempt in ten seconds, for a day
        clock[0] += 10.0
        for tell in (limited, control):
            tell("refused", address="1.2.3.4:5", reason="no TLS")
    assert len(control) == 8640
    most = module.MOST_LINES + 86_400 / module.LINE_SECONDS
    assert most - 2 < len(log) <= most
    left_out = sum(facts.get("left_out", 0) for _, facts in log)
    assert 8640 - len(log) - left_out < module.LINE_SECONDS / 10


def test_a_stranger_does_not_hide_what_parties_do(clock):
    log = Log()
    limited = LimitedLog(log, lambda: clock[0])
    for _ in range(1000):
        limited("refused", address="1.2.3.4:5", reason="no TLS")
        limited("packet refused", "south", reason="in the name of north")
    for event in ("connected", "disconnected", "refused", "packet refused"):
        limited(event, "north", address="1.2.3.4:6")
    assert [facts["peer"] for _, facts in log[-4:]] == ["north"] * 4


def test_invented_names_do_not_fill_the_log():
    """Without certificates a stranger connects under any name."""
    log = Log()
    entrance = Entrance(None, tell=log)
    for number in range(1000):
        entrance.packet_refused(f"party-{number}", "not plain bytes of a party")
    assert len(log) == module.MOST_LINES
