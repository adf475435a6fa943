"""`vertibayes learn study.toml`: a site is killed meanwhile, or another run of the study begins."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from contextlib import contextmanager

import pytest

from tests.e2e.processes import LIMIT, Process, free_address
from tests.protocols.deployment.parties import SITES, change, deployment, pooled
from vertibayes import PlainCounter, k2
from vertibayes.cli.up import approve_for_practice, party_files
from vertibayes_protocols.deployment.files import StudyFile

pytestmark = pytest.mark.machines

ORDER = ["age", "sex", "pulse", "drug", "outcome"]


class Parties:
    """All parties of a study as commands: with free tables, or approved by all sites."""

    def __init__(self, folder, *, free, patience):
        self.folder = deployment(folder, address=free_address(), free=free)
        self.study = folder / "analyst" / "study.toml"
        self.running = {}
        file = StudyFile.read(self.study)
        self.files = party_files(self.study, file)
        if free:
            change(self.study, '# algorithm = "hybrid"', 'algorithm = "k2"')
        else:
            approve_for_practice(file, self.files, quiet=True)
        for path in (self.study, *(self.files[party] for party in (*SITES, "dealer"))):
            change(path, "# [patience] ", f"[patience]\n{patience}\n# ")

    def start(self, party):
        file = self.files[party]
        command = [sys.executable, "-m", "vertibayes", file.stem, str(file)]
        self.running[party] = Process(party, command=command)

    def start_all(self):
        self.start("relay")
        self.running["relay"].wait_for("", " listening ")
        for party in (*SITES, "dealer"):
            self.start(party)
        for party in (*SITES, "dealer"):
            self.running[party].wait_for("", " connected ")

    def learn(self, name="run", study=None):
        """Start a run; its results are in a folder of its name."""
        command = ["-m", "vertibayes", "learn", str(study or self.study), "--out"]
        command = [sys.executable, *command, str(self.folder / name)]
        self.running[name] = Process(name, command=command)
        return self.running[name]


@contextmanager
def parties(folder, free, patience):
    all_ = Parties(folder, free=free, patience=patience)
    try:
        all_.start_all()
        yield all_
    finally:
        for process in all_.running.values():
            process.kill()


def status_of(run):
    """Return the exit status of a run, and what it has printed since it was last read."""
    status = run.process.wait(LIMIT)
    run.reader.join(10)
    return status, list(run.lines.queue)


def assert_equals_pooled(all_, name="run"):
    wanted = k2(PlainCounter(pooled(all_.folder)), ordering=ORDER, max_parents=3)
    learned = json.loads((all_.folder / name / "structure.json").read_text())
    assert wanted.edges and sorted(map(tuple, learned["edges"])) == sorted(wanted.edges)


def released(all_, site):
    """Return the tables that a site's ledger has as released by approved studies."""
    lines = (all_.folder / site / "memory" / "ledger.jsonl").read_text().splitlines()
    groups = [group for line in lines for group in json.loads(line).get("released", ())]
    return [table for group in groups for table in group["tables"]]


@pytest.mark.parametrize(
    ("free", "answered"),
    [(True, "tables"), (False, "choose")],
    ids=["free tables", "approved"],
)
def test_a_run_goes_on_when_a_site_is_killed_and_started_again(tmp_path, free, answered):
    with parties(tmp_path / "all", free, "gone = 2\nprobe = 0.5") as all_:
        run = all_.learn()
        all_.running["north"].wait_for("", f" answered query={answered}")
        all_.running["north"].kill()
        run.wait_for("there is no session (north")
        all_.start("north")
        status, said = status_of(run)
        assert status == 0, said
        assert_equals_pooled(all_)
        assert free or len(released(all_, "south")) == len(ORDER)


@pytest.mark.parametrize("free", [True, False], ids=["free tables", "approved"])
def test_a_second_run_of_a_study_is_refused_by_name_and_the_first_goes_on(tmp_path, free):
    """In the same folder, and in a copy of it; the first run is paused meanwhile."""
    with parties(tmp_path / "all", free, "gone = 60") as all_:
        run = all_.learn("first")
        all_.running["north"].wait_for("", f" answered query={'tables' if free else 'choose'}")
        run.process.send_signal(signal.SIGSTOP)
        status, said = status_of(all_.learn("second"))
        assert status == 2 and "is in use by another process" in said[-1]
        copy = all_.folder / "copy"
        shutil.copytree(all_.study.parent, copy)
        status, said = status_of(all_.learn("third", copy / "study.toml"))
        assert status == 2 and "analyst runs this study since" in said[-1], said
        run.process.send_signal(signal.SIGCONT)
        status, said = status_of(run)
        assert status == 0, said
        assert_equals_pooled(all_, "first")
