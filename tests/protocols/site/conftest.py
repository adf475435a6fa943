"""A PostgreSQL server, for all tests of one process; tests without it are skipped with a reason."""

import pytest

from tests.protocols.site.postgresql import NoServerError, running


@pytest.fixture(scope="session")
def server():
    pytest.importorskip("adbc_driver_postgresql")
    try:
        started = running()
        with started as server:
            yield server
    except NoServerError as error:
        pytest.skip(str(error))


@pytest.fixture
def postgresql(server, monkeypatch):
    """Return the server, whose password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", server.password)
    return server
