"""The command `vertibayes relay`: its log, and what `check` says of it while it runs."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.e2e.processes import Authority, Process, free_address
from vertibayes_protocols.transports.line import knock
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.transports.route import Route

pytestmark = pytest.mark.machines

FILE = """[relay]
address = "{}"
root = "root.crt"
certificate = "relay.crt"
key = "relay.key"
"""


class Relay:
    """The command `vertibayes relay`, its folder and its log."""

    def __init__(self, folder):
        self.folder, self.address = folder / "relay", free_address()
        self.study = Authority(folder / "study")
        self.folder.mkdir()
        names = "root.crt", "relay.crt", "relay.key"
        for path, name in zip(self.study.certificates("relay"), names, strict=True):
            shutil.copy(path, self.folder / name)
        (self.folder / "relay.key").chmod(0o600)
        self.file = self.folder / "relay.toml"
        self.file.write_text(FILE.format(self.address))
        command = [sys.executable, "-m", "vertibayes", "relay", str(self.file)]
        self.process = Process("relay", command=command)
        self.process.wait_for("", " listening ")

    def says(self, *parts):
        """Wait for a line with all parts, from now on."""
        line = self.process.wait_for("", parts[0], timeout=60)
        while not all(part in line for part in parts):
            line = self.process.wait_for("", parts[0], timeout=60)
        return line


@pytest.fixture(scope="module")
def relay(tmp_path_factory):
    relay = Relay(tmp_path_factory.mktemp("log"))
    yield relay
    relay.process.kill()


@pytest.fixture(scope="module")
def north(relay):
    return relay.study.certificates("north")


def test_a_party_that_connects_and_leaves_is_logged(relay, north):
    with connect("north", relay.address, (), certificates=north):
        line = relay.says(" connected ", "peer=north", "127.0.0.1:", "certificate=", "until=")
    relay.says(" disconnected ", "peer=north", "seconds=")
    assert "relay connected" in line


def test_check_tells_what_listens(relay, north, tmp_path):
    def told(certificates):
        return tuple(knock(Route(relay.address, certificates), 20.0))

    assert told(north) == ("relay", "")
    relay.says(" connected ", "peer=north")
    assert told(None)[0] == "other"
    relay.says(" refused ", "no TLS")
    assert told(Authority(tmp_path).certificates("north")) == ("other", "unknown authority")
    assert told(relay.study.certificates("old", "north", days=-0.5)) == ("refused", "expired")
    relay.says(" refused ", "expired")
    checked = subprocess.run(
        [sys.executable, "-m", "vertibayes", "check", str(relay.file)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "is in use by a relay of this study" in checked.stdout


def test_the_list_of_revoked_certificates_is_read_while_the_relay_runs(relay):
    south, revoked = relay.study.certificates("south"), relay.folder / "revoked.txt"
    with connect("south", relay.address, (), certificates=south):
        number = relay.says(" connected ", "peer=south").partition("certificate=")[2].split()[0]
        revoked.write_text(f"{number}    # south, stolen\n")
        relay.says(" refused ", f"revoked: south, certificate {number}")
        relay.says(" disconnected ", "peer=south")
    revoked.unlink()
