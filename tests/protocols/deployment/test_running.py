"""What a party's own log says of how a session ended."""

import errno
import logging
import os
from contextlib import closing, contextmanager
from time import monotonic, sleep

import numpy as np
import pytest

from tests.e2e.processes import free_address
from tests.protocols.deployment.parties import change, deployment
from vertibayes_mpc.errors import ProtocolError
from vertibayes_protocols.deployment import log, running
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.variables import Rows


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """Return what is told when a session has ended."""
    file = SiteFile.read(deployment(tmp_path / "all") / "north" / "site.toml")

    @contextmanager
    def no_mailbox(*_):
        yield None

    monkeypatch.setattr(running, "_mailbox", no_mailbox)

    def ended(error):
        told = []
        monkeypatch.setattr(
            running, "answer", lambda _, role, *__, watches: watches(role, b"name").ended(error)
        )
        running.run_site(
            file, lambda *args, **facts: told.append(log.line("north", *args, **facts))
        )
        return told[-1]

    return ended


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (None, "north session ended session=6e616d65 analyst=analyst"),
        (ProtocolError("south", "lies"), 'session=6e616d65 analyst=analyst reason="south lies"'),
        (OSError(errno.ENOSPC, "No space left", "m/memory"), "m/memory: No space left"),
        (raised(OSError("43.9")), "OSError at test_running.py:"),
        (raised(KeyError("patient-7")), "KeyError at test_running.py:"),
    ],
)
def test_the_own_log_says_why_and_no_value(ended, error, line):
    said = ended(error)
    assert line.replace("south lies", str(error)) in said
    assert "43.9" not in said and "patient" not in said
    assert ("reason" in said) == (error is not None)


def test_the_log_says_what_is_found_in_columns_and_no_value(tmp_path, monkeypatch):
    site = deployment(tmp_path / "all") / "north" / "site.toml"
    rows = [f"p{i},{i % 3},{'Secret' if i % 2 else 'SECRET'},4711" for i in range(40)]
    (site.parent / "records.csv").write_text("\n".join(["id,age,sex,other", *rows]))
    change(site, "age = { cut = [30, 50, 70] }", "age = { states = ['0', '1', '2'] }\nother = {}")
    monkeypatch.setattr(running, "_serve", lambda *_: None)
    told = []
    running.run_site(
        SiteFile.read(site), lambda *args, **facts: told.append(log.line("north", *args, **facts))
    )
    assert told[:2] == [
        "north variable left out name=other reason=constant",
        "north variable to check name=sex reason=case",
    ]
    assert not any(value in line for line in told for value in ("4711", "ecret", "ECRET"))


def write_memory(path):
    with closing(SiteMemory(path)) as memory:
        memory.commit(b"study", {"x": np.zeros(3, np.uint8)})


def write_ledger(path):
    with closing(LedgerFile(path)) as ledger:
        ledger.open([RevealedTable(("x",), 2, "analyst", Rows())])


@pytest.mark.parametrize("write", [write_memory, write_ledger])
def test_a_full_disk_is_named_by_the_file(tmp_path, monkeypatch, write):

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write(tmp_path / "file")
    assert caught.value.filename == str(tmp_path / "file")


# ---- the relay is away, and back -----------------------------------------------------------------


@pytest.mark.parametrize("quiet", [False, True])
def test_that_the_relay_is_away_and_back_is_logged_once(capsys, monkeypatch, quiet):
    root, address = logging.getLogger(), free_address()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    log.start_log(quiet=quiet)
    with start_relay(address, certificates=None):
        link = connect("a", address, (), certificates=None, tell=log.teller("north"))
    with link:
        end = monotonic() + 20
        while not link.failure and monotonic() < end:
            sleep(0.01)
        with start_relay(address, certificates=None):
            assert link.await_relay(20.0)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 1)[1] for line in lines[:2]] == [
        'north waiting for the relay reason="Connection refused"', "north connected again",
    ]  # fmt: skip
