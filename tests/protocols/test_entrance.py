"""The relay's log, which nobody fills."""

import pytest

from tests.protocols.relays import Log
from vertibayes_protocols.transports import entrance as module
from vertibayes_protocols.transports.entrance import Entrance, LimitedLog


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


def test_the_list_of_revoked_certificates_stays_known_while_it_is_the_same(tmp_path):
    log, listed = Log(), tmp_path / "revoked.txt"
    entrance = Entrance(None, listed, tell=log)
    listed.write_text("1f\n")
    assert entrance.revoked() == entrance.revoked() == {0x1F}
    listed.write_text("nobody\n")
    assert entrance.revoked() == entrance.revoked() == {0x1F}
    assert len(log.of("list of revoked certificates not read")) == 1
