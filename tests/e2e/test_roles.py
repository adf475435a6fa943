"""docs/roles: four sites are deployed by the commands of the pages, each role by its own page."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import free_address
from tests.page_commands import first_commands

ROOT = Path(__file__).parents[2]
SITES = ("clinic", "hospital", "registry", "laboratory")
PAGES = {
    "relay": ["relay"],
    "dealer": ["dealer"],
    "site": SITES,
    "owner": SITES,
    "analyst": ["ana"],
}
ORDER = "enrol", "bundle", "fetch", "relay", "dealer", "site", "approve", "check", "learn"
STARTS = {"relay", "dealer", "site"}  # commands that run until they are stopped


def commands():
    """Return who runs which command, in an order in which it can be done; by the pages."""
    found = [
        (party, command.replace("site clinic", f"site {party}"))
        for page, parties in PAGES.items()
        for command in first_commands((ROOT / "docs" / "roles" / f"{page}.md").read_text())
        for party in parties
    ]
    return sorted(found, key=lambda one: ORDER.index(one[1].split()[1]))


def test_four_sites_are_deployed_by_27_commands_of_which_six_start_a_party():
    verbs = [command.split()[1] for _, command in commands()]
    assert len(verbs) == 27
    assert sum(verb in STARTS for verb in verbs) == 6
    for page in PAGES:  # the titles say how many
        text = (ROOT / "docs" / "roles" / f"{page}.md").read_text()
        count = {1: "one command", 3: "three commands", 5: "five commands"}
        assert text.splitlines()[0].endswith(f": {count[len(first_commands(text))]}")


@pytest.mark.machines
def test_each_role_deploys_its_part_by_its_page(tmp_path, monkeypatch):
    """What people do by hand: six edited files, mails, and the digest that is typed."""
    program = tmp_path / "bin" / "vertibayes"
    program.parent.mkdir()
    python = f"PYTHONPATH={ROOT}:{ROOT}/mpc:{ROOT}/protocols exec {sys.executable}"
    program.write_text(f'#!/bin/sh\n{python} -m vertibayes "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    people, address, running = By(tmp_path), free_address(), []
    try:
        for party, command in commands():
            verb = command.split()[1]
            command = command.replace("relay.example.org:8102", address)
            if verb in STARTS:
                running.append(people.start(party, command))
            elif verb == "bundle":
                people.edit()
                people.digest = re.search(r"(?m)^Digest: (.*)$", people.run(party, command))[1]
                people.send()
            elif verb == "fetch":
                people.run(party, f'{command} --digest "{people.digest}"')
            else:
                said = people.run(party, f"{command} --yes" * (verb == "approve") or command)
                if verb == "enrol":
                    people.mails.append(said)
        assert "Nothing is new" in people.run("clinic", "vertibayes fetch")  # from the relay
        released = (tmp_path / "ana" / "results" / "release" / "tables.csv").read_text()
        assert all(f"has_{site}" in released for site in SITES)
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(timeout=30)


class By:
    """What the people of the roles do in their folders."""

    def __init__(self, folder):
        self.folder, self.mails, self.digest = folder, [], ""

    def run(self, party, command):
        where = self.folder / party
        where.mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", command], cwd=where, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{party}: {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, party, command):
        log = (self.folder / party / "log").open("w")
        with log:
            return subprocess.Popen(
                ["sh", "-c", f"exec {command}"], cwd=self.folder / party, stderr=log
            )

    def edit(self):
        """Edit the six files: of each site, the study, and the lines that came by mail."""
        for number, site in enumerate(SITES, 2):
            records = "".join(f"p{i},{'no' if i % number else 'yes'}\n" for i in range(200))
            (self.folder / site / "records.csv").write_text(f"id,has_{site}\n{records}")
            self.change(f"{site}/site.toml", '"example" = {}', f"has_{site} = {{}}")
        names = ", ".join(f'"{site}"' for site in SITES)
        self.change("ana/study.toml", 'sites = ["example"]', f"sites = [{names}]")
        self.change("ana/study.toml", '["example"]', f"[{names.replace(chr(34), 'Q')}]")
        study = self.folder / "ana" / "study.toml"
        study.write_text(re.sub(r"Q(\w+)Q", r'"has_\1"', study.read_text()))
        (self.folder / "ana" / "lines.txt").write_text("".join(self.mails))

    def change(self, path, old, new):
        text = (self.folder / path).read_text()
        assert text.count(old) == 1
        (self.folder / path).write_text(text.replace(old, new))

    def send(self):
        """Send the bundle to all parties."""
        for parties in PAGES.values():
            for party in parties:
                if party != "ana":
                    shutil.copy(self.folder / "ana/coordinator/bundle-1.json", self.folder / party)
