"""A running party logs that its certificate expires soon."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tests.e2e.processes import Authority
from vertibayes_protocols.deployment import log as module
from vertibayes_protocols.deployment.log import expiry_logged, tell_expiry
from vertibayes_protocols.transports.tls import Certificates


@pytest.fixture
def log():
    return []


@pytest.fixture
def tell(log):
    return lambda event, **facts: log.append((event, facts))


def file_of(tmp_path, days):
    certificates = Authority(tmp_path).certificates("north", days=days)
    certificates.key.chmod(0o600)
    return SimpleNamespace(party="north", certificates=certificates)


def test_a_certificate_that_expires_within_thirty_days_is_logged(tmp_path, log, tell):
    tell_expiry(file_of(tmp_path, 12.5), tell)
    until = datetime.now(UTC) + timedelta(days=12.5)
    facts = {"days": 12, "until": f"{until:%Y-%m-%d}"}
    assert log == [("certificate expires soon", facts)]


def test_a_certificate_that_is_valid_for_longer_is_not(tmp_path, log, tell):
    tell_expiry(file_of(tmp_path, 31), tell)
    assert log == []


def test_an_expired_certificate_is_logged_and_ends_nothing(tmp_path, log, tell):
    tell_expiry(file_of(tmp_path, -0.1), tell)
    ((event, facts),) = log
    assert event == "certificate not valid" and "is valid from" in facts["reason"]


def test_it_is_logged_each_day_until_it_is_renewed(tmp_path, log, tell, monkeypatch):
    monkeypatch.setattr(module, "DAY_SECONDS", 0.01)
    file = file_of(tmp_path, 5)

    def wait_for(condition):
        end = datetime.now(UTC) + timedelta(seconds=10)
        while not condition():
            assert datetime.now(UTC) < end

    with expiry_logged(file, tell):
        wait_for(lambda: len(log) >= 3)
        file.certificates = file_of(tmp_path / "new", 365).certificates
        wait_for(lambda: log.append(None) or log[-2:] == [None, None])
    assert {event for event, _ in filter(None, log)} == {"certificate expires soon"}


def test_without_certificates_nothing_is_logged(tell, log):
    file = SimpleNamespace(party="north", certificates=None)
    with expiry_logged(file, tell):
        pass
    assert log == [] and Certificates
