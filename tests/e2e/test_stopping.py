"""Parties that are told to stop end within seconds, whatever the transport is waiting for."""

from __future__ import annotations

import ctypes
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.processes import Process, free_address
from tests.protocols.deployment.parties import deployment
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.storage.memory import SiteMemory

SECONDS = 15.0  # half of what one attempt to connect takes: a party that waits for it is noticed
FILES = {"relay": ("relay", "relay.toml"), "dealer": ("dealer", "dealer.toml"),
         "north": ("site", "site.toml")}  # fmt: skip

pytestmark = [
    pytest.mark.machines,
    pytest.mark.skipif(sys.platform != "linux", reason="threads are signalled by tgkill"),
]


class Commands:
    """Parties as commands of one deployment."""

    def __init__(self, folder, address):
        self.folder, self.running = deployment(folder, address=address), {}

    def start(self, party, until):
        kind, file = FILES[party]
        command = [sys.executable, "-m", "vertibayes", kind, str(self.folder / party / file)]
        self.running[party] = Process(party, command=command)
        self.running[party].wait_for("", until)
        return self.running[party].process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.kill()


def signal_another_thread(process, number):
    """Send a signal as the kernel may: to a thread that is not the main one."""
    threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
    another = next(thread for thread in threads if thread != process.pid)
    assert ctypes.CDLL(None).tgkill(process.pid, another, number) == 0


def ends(process):
    """Return its exit status, and in how many seconds it came."""
    start = time.monotonic()
    return process.wait(60), time.monotonic() - start


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGTERM, 0, "{} stopped"),
        (signal.SIGHUP, 0, "{} stopped"),
        (signal.SIGINT, 130, "vertibayes: stopped"),
    ],
)
def test_a_signal_that_reaches_another_thread_ends_a_party(tmp_path, number, status, said):
    with Commands(tmp_path / "all", free_address()) as commands:
        commands.start("relay", " listening ")
        for party in ("dealer", "north"):
            commands.start(party, " connected ")
        for party in ("north", "dealer", "relay"):
            process = commands.running[party].process
            signal_another_thread(process, number)
            code, seconds = ends(process)
            assert code == status and seconds < SECONDS
            commands.running[party].wait_for("", said.format(party))


@pytest.fixture
def swallowing():
    """An address whose connections are never made: a firewall that drops what it is sent."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield "{}:{}".format(*full.getsockname())
        for one in waiting:
            one.close()


def test_a_party_ends_while_it_tries_to_connect_and_its_files_are_free(tmp_path, swallowing):
    with Commands(tmp_path / "all", swallowing) as commands:
        process = commands.start("north", " ready ")
        time.sleep(1.5)  # it has begun to connect
        process.send_signal(signal.SIGTERM)
        code, seconds = ends(process)
        assert code == 0 and seconds < SECONDS
        file = SiteFile.read(commands.folder / "north" / "site.toml")
        SiteMemory(file.folder / "memory").close()
