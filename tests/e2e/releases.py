"""Parties of the last release and of this one: each runs from the files of its own tree."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.processes import LIMIT, ROOT, Process, free_address
from tests.protocols.deployment.parties import SITES

OLD, NEW = "old", "new"
REVISIONS = ("v0.1.0", "d716782")  # the tag of the last release, and its commit
DEALER, RELAY = "dealer", "relay"
PARTIES = (*SITES, DEALER)

PREPARE = """
import sys
from pathlib import Path
from vertibayes_protocols.deployment.certificates import provision
from tests.protocols.deployment.parties import SITES, deployment
folder = deployment(Path(sys.argv[1]), address=sys.argv[2], free=sys.argv[3] == "free")
provision(folder, [*SITES, "dealer", "analyst"], "127.0.0.1")
for path in folder.glob("*/*.toml"):
    text = path.read_text()
    for key in ("root", "certificate", "key"):
        text = text.replace(f"# {key} =", f"{key} =")
    path.write_text(text)
"""

COUNT = """
import json, os, sys, time
from vertibayes import Family
from vertibayes_protocols.deployment import running
from vertibayes.study import connect_study
begin, times = running.NetworkTransport, []
def timed(*given, **named):
    times.append(time.time())
    try:
        return begin(*given, **named)
    finally:
        times.append(time.time())
running.NetworkTransport = timed
try:
    with connect_study(sys.argv[1]) as counter:
        asked = [Family(*json.loads(text)) for text in sys.argv[2:]]
        result = [table.tolist() for table in counter.tables(asked)]
except Exception as error:
    result = str(error)
print(json.dumps([*(times or [0.0, 0.0])[:2], result]), flush=True)
os._exit(0)
"""


def last_release(folder: Path) -> Path:
    """Write the files of the last release to a folder; skip the test if the history has none."""
    for revision in REVISIONS:
        try:
            packed = subprocess.run(
                ["git", "archive", revision], cwd=ROOT, capture_output=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not in 3.11.2
            archive.extractall(folder)
        return folder
    pytest.skip(f"the history has neither {' nor '.join(REVISIONS)}: clone it with its tags")


class Releases:
    """A study whose parties are each of the last release or of this one.

    The files of all parties are as the last release writes them. The parties of this release keep
    theirs in folders of their own, unless both are to use `one_memory`: the last release refuses a
    memory of this one.
    """

    def __init__(self, old: Path, folder: Path, *, free=True, one_memory=False):
        self.trees, self.folder, self.one_memory = {OLD: old, NEW: ROOT}, folder, one_memory
        self.running, self.releases = {}, {}
        how = "free" if free else "approved"
        self.python(OLD, PREPARE, folder, free_address(), how)

    def study(self, release):
        return self._file("analyst", "study", release)

    def _file(self, party, kind, release):
        """Return a party's file; that of this release names another folder to keep things in."""
        path = self.folder / party / f"{kind}.toml"
        if release == OLD or self.one_memory:
            return path
        other = path.with_name(f"{kind}.new.toml")
        other.write_text(
            re.sub(r'^folder = "(\w+)"', r'folder = "\1-new"', path.read_text(), flags=re.M)
        )
        return other

    def command(self, release, *words, timeout=LIMIT):
        """Run a command of a release; return its exit status and what it prints."""
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(
            command, cwd=self.trees[release], capture_output=True, text=True, timeout=timeout
        )
        return done.returncode, done.stdout + done.stderr

    def python(self, release, script, *words):
        """Run a script of a release; return the last line that it prints."""
        if release == OLD:  # its packages had names without a prefix
            script = script.replace("vertibayes_protocols", "protocols")
        code, said = self.command(release, "-W", "ignore", "-c", script, *words)
        assert code == 0, said
        return said.splitlines()[-1] if said else ""

    def vertibayes(self, release, *words):
        """Run a command of `vertibayes`."""
        return self.command(release, "-m", "vertibayes", *words)

    def start(self, **releases):
        """Have parties run in a release; restart those that run in another."""
        changed = {p: r for p, r in releases.items() if self.releases.get(p) != r}
        self.stop(self.running if RELAY in changed else changed)
        for party, release in {**self.releases, **releases}.items():
            if party not in self.running:
                self._start(party, release)
        for party, process in self.running.items():
            if not any("connected" in line or "listening" in line for line in process.seen):
                process.wait_for("", "listening" if party == RELAY else "connected")

    def _start(self, party, release):
        kind = party if party in (DEALER, RELAY) else "site"
        path = self._file(party, kind, release)
        command = [sys.executable, "-m", "vertibayes", kind, str(path)]
        process = Process(party, command=command, folder=self.trees[release])
        self.running[party], self.releases[party] = process, release
        if party == RELAY:
            process.wait_for("", "listening")

    def stop(self, parties):
        """End the processes of parties."""
        for party in [party for party in parties if party in self.running]:
            self.running.pop(party).kill()

    def count(self, release, *families):
        """Count tables; return the tables or the error's text, and when.

        The first time is when the analyst is connected and begins a session, the second when the
        session has begun or failed.
        """
        return json.loads(
            self.python(release, COUNT, self.study(release), *map(json.dumps, families))
        )

    def seconds_until(self, party, part, begun):
        """Return how many seconds after a time a party has logged a text."""
        line = self.running[party].wait_for("", part)
        old = line[10] == " "  # releases up to 0.1.0 log local time
        logged = (
            datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f")
            if old
            else (datetime.fromisoformat(line.partition(" ")[0]))
        )
        return logged.timestamp() - begun

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(self.running)
