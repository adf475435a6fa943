"""A run is watched between machines: parties are processes, and one of them is killed."""

import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.processes import LIMIT, free_address, until
from tests.protocols.deployment.parties import SITES, deployment

pytestmark = pytest.mark.machines

HERE = Path(__file__).parents[2]


@pytest.fixture
def started(tmp_path):
    """Yield what starts a command, whose output goes to a file; all are killed in the end."""
    with ExitStack() as held:

        def start(name, *arguments):
            file = held.enter_context((tmp_path / f"{name}.log").open("w"))
            command = [sys.executable, "-m", "vertibayes", *map(str, arguments)]
            process = subprocess.Popen(command, cwd=HERE, stdout=file, stderr=subprocess.STDOUT)
            held.callback(process.wait)
            held.callback(process.kill)
            return process

        yield start


def test_a_site_that_is_killed_is_waited_for_and_the_run_ends_when_it_is_back(started, tmp_path):
    folder = deployment(tmp_path / "all", address=free_address())
    study, said = folder / "analyst" / "study.toml", lambda name: tmp_path / f"{name}.log"
    started("relay", "relay", folder / "relay" / "relay.toml")
    until(lambda: "listening" in said("relay").read_text())
    dealer = started("dealer", "dealer", folder / "dealer" / "dealer.toml")
    sites = {name: started(name, "site", folder / name / "site.toml") for name in SITES[:2]}
    run = started("run", "learn", study, "--out", tmp_path / "out")
    until(lambda: (folder / "analyst" / "study.status.json").exists())
    started("watch", "status", study, "--watch", "--interval", "0.2")

    # East is not started: the watch names it. The dealer then holds the run at its first query.
    until(lambda: "The run waits for east to connect." in said("watch").read_text())
    assert "east (site) is not connected; its owner starts it with" in status_of(study)
    dealer.send_signal(signal.SIGSTOP)
    sites["east"] = started("east", "site", folder / "east" / "site.toml")
    joined = re.compile(r"^  \w+( \(\w+\))? has joined", re.MULTILINE)  # parties, and no event
    until(lambda: len(joined.findall(status_of(study))) == 4)

    # South is killed, and is away until it is started again.
    sites["south"].send_signal(signal.SIGKILL)
    dealer.send_signal(signal.SIGCONT)
    until(lambda: "The run waits for south" in status_of(study))
    until(lambda: re.search(r"south \(site\) is (away|not connected)", status_of(study)))
    started("south-again", "site", folder / "south" / "site.toml")

    assert run.wait(timeout=LIMIT) == 0, said("run").read_text()
    until(lambda: "The run has ended." in said("watch").read_text())
    lines = said("watch").read_text()
    for text in (
        "waits for east to connect",
        "waits for south to come back",
        str(tmp_path / "out"),
    ):
        assert text in lines, lines


def status_of(study):
    """Return what `vertibayes status` prints of a run, which is well or in trouble."""
    command = [sys.executable, "-m", "vertibayes", "status", str(study)]
    answer = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, text=True, check=False)
    assert answer.returncode in (0, 1)
    return answer.stdout
