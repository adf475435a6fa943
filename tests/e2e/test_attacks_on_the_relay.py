"""Whoever reaches the relay's port, before any certificate is shown."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from tests.e2e.processes import Authority, Process, free_address

# CellNet's connection that fails can keep a process: it is one of its own, and killed.
CONNECT = """
import os, sys
from pathlib import Path
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.tls import Certificates
from vertibayes_protocols.transports.websocket import connect
try:
    connect("b", sys.argv[1], (), certificates=Certificates(*map(Path, sys.argv[2:])), timeout=5.0)
except TransportError as error:
    print(error, flush=True)
    os._exit(3)
print("connected", flush=True)
os._exit(0)
"""


def connected(address, certificates, seconds=25):
    """Connect as a party in 5 s, in a process of its own; TimeoutExpired if it never ends."""
    command = [sys.executable, "-c", CONNECT, address, *map(str, certificates)]
    return subprocess.run(command, timeout=seconds, capture_output=True, text=True).stdout


@pytest.fixture
def relay(tmp_path):
    authority, address = Authority(tmp_path), free_address()
    paths = list(map(str, authority.certificates("relay")))
    (tmp_path / "relay.json").write_text(json.dumps({"address": address, "certificates": paths}))
    process = Process("relay", tmp_path / "relay.json", "echo")
    process.wait_for("ready")
    yield address, authority.certificates("b")
    process.kill()


def test_a_party_connects(relay):
    assert "connected" in connected(*relay)


def test_a_stranger_that_says_nothing_keeps_nobody_out(relay):
    """CellNet alone waits for its TLS where it accepts connections, without end."""
    address, certificates = relay
    host, port = address.split(":")
    with socket.create_connection((host, int(port))):
        try:
            assert "connected" in connected(address, certificates)
        except subprocess.TimeoutExpired:
            pytest.fail("nobody gets in while the stranger stays", pytrace=False)


def test_a_party_gives_up_a_relay_that_says_nothing(tmp_path):
    """CellNet alone waits without end for the TLS of its own attempt."""
    certificates = Authority(tmp_path).certificates("b")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        try:
            assert "cannot be reached" in connected(address, certificates)
        except subprocess.TimeoutExpired:
            pytest.fail("still waiting 20 s after its time-out", pytrace=False)
