"""The parties of the soak: their files, their processes, and what the processes take."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import numpy as np

ROOT = Path(__file__).parents[1]
SITES = ("clinic", "hospital", "registry")
ANALYSTS = ("analyst-1", "analyst-2")
COLUMNS = {
    "clinic": ("age", "smoker", "asthma"),
    "hospital": ("ill", "drug", "fever"),
    "registry": ("rural", "income", "work"),
}
RECORDS = 2_000
CLOCK = "soak_clock.so"


def make_clock(folder: Path) -> bool:
    """Compile the library that steps clocks, if there is a compiler."""
    source = Path(__file__).with_name("soak_clock.c")
    words = ["cc", "-shared", "-fPIC", "-o", str(folder / CLOCK), str(source), "-ldl"]
    return shutil.which("cc") is not None and subprocess.run(words, check=True).returncode == 0


def draw_records(seed: int = 7) -> dict[str, np.ndarray]:
    """Draw the columns of all sites; each depends on earlier ones."""
    draw = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    for names in COLUMNS.values():
        for name in names:
            base = draw.integers(0, 3, RECORDS)
            for earlier in list(columns)[-2:]:
                base = np.where(draw.random(RECORDS) < 0.4, columns[earlier] % 3, base)
            columns[name] = base
    return columns


def write_parties(folder: Path, address: str, studies: dict[str, dict]) -> None:
    """Write all folders by the commands, as their owners would.

    Parameters
    ----------
    folder : Path
        For the folders.
    address : str
        Of the relay.
    studies : dict of str to dict
        By name: analyst, variables, `release` (lines), or None for exact tables.
    """
    command("init", "--sites", ",".join(SITES), "--analyst", ANALYSTS[0], "--practice",
            "--address", address, "--out", folder)  # fmt: skip
    second = folder / ANALYSTS[1]
    second.mkdir()
    public = command("keygen", "--out", second / f"{ANALYSTS[1]}.key").strip()
    parties = [*SITES, "dealer", *ANALYSTS]
    command("provision", "--parties", ",".join(parties), "--host", "127.0.0.1", "--out",
            folder / "coordinator")  # fmt: skip
    for party in (*parties, "relay"):
        shutil.copytree(folder / "coordinator" / party, folder / party, dirs_exist_ok=True)
    draft = folder / ANALYSTS[0] / "study.toml"
    for name, study in studies.items():
        _write_study(folder, draft.read_text(), name, study)
    draft.unlink()
    columns = draw_records()
    for site in SITES:
        _write_site(folder / site, columns, public)
    _serve_both(folder / "dealer" / "dealer.toml", public)
    for path in folder.glob("*/*.toml"):
        text = path.read_text()
        for key in ("root", "certificate", "key"):
            text = re.sub(rf"(?m)^# {key} = ", f"{key} = ", text)
        path.write_text(text)


def _write_study(folder: Path, text: str, name: str, study: dict) -> None:
    first, own = ANALYSTS[0], study["analyst"]
    text = text.replace(f'"{first}"', f'"{own}"').replace(f"{first}.key", f"{own}.key")
    text = text.replace('folder = "study"', f'folder = "{name}"')
    listed = ", ".join(f'"{variable}"' for variable in study["variables"])
    text = re.sub(r"(?m)^(# )?variables = .*$", f"variables = [{listed}]", text, count=1)
    begin, end = text.index("[release]"), text.index("# Without [release]")
    text = text[:begin] + study["release"] + "\n" + text[end:]
    text += '\n[run]\npatience = "2 min"\n'
    (folder / own / f"{name}.toml").write_text(text)


def _write_site(folder: Path, columns: dict[str, np.ndarray], public: str) -> None:
    names = COLUMNS[folder.name]
    order = np.random.default_rng(len(folder.name)).permutation(RECORDS)
    with (folder / "records.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names])
        writer.writerows(
            [f"p{at:05}", *(f"s{columns[name][at]}" for name in names)] for at in order
        )
    path = folder / "site.toml"
    text = path.read_text().replace('"example" = {}', "\n".join(f"{name} = {{}}" for name in names))
    text = text.replace("# free_tables = false", "free_tables = true ")
    for key in ("most_released_tables", "most_released_cells", "most_choice_bits"):
        text = re.sub(rf"(?m)^{key} = [0-9_]+", f"{key} = 100_000_000", text)
    text = re.sub(r"(?m)^# most_failed_runs = [0-9]+", "most_failed_runs = 100_000", text)
    path.write_text(text)
    _serve_both(path, public)


def write_columns(folder: Path, variables: list[str]) -> list[Path]:
    """Write the records of some variables, a file for each site that has one."""
    folder.mkdir()
    columns, files = draw_records(), []
    for site, names in COLUMNS.items():
        if own := [name for name in names if name in variables]:
            files.append(folder / f"{site}.csv")
            with files[-1].open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["id", *own])
                writer.writerows(
                    [f"p{at:05}", *(f"s{columns[name][at]}" for name in own)]
                    for at in range(RECORDS)
                )
    return files


def _serve_both(path: Path, public: str) -> None:
    """Have a party serve both analysts."""
    text = path.read_text()
    one = re.search(r'\[analyst\].*\nname = "(.*)"\npublic_key = "(.*)"\n', text)
    both = f'[analysts]\n{one[1]} = "{one[2]}"\n{ANALYSTS[1]} = "{public}"\n'
    path.write_text(text.replace(one[0], both))


def command(*arguments: object, cwd: Path | None = None) -> str:
    """Run a command of vertibayes to its end; return what it prints."""
    words = [sys.executable, "-P", "-m", "vertibayes", *map(str, arguments)]
    ran = subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{arguments}: {ran.stderr}")
    return ran.stdout


def environment() -> dict[str, str]:
    """Return the environment of all processes."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


class Party:
    """A party's process, which is started again whenever it has ended, as a service would.

    Attributes
    ----------
    samples : list of (float, int, int, int)
        Seconds, process, resident bytes, open files.
    """

    def __init__(self, name: str, words: list[str], folder: Path, clock: Path | None = None):
        self.name, self.folder, self.words, self.clock = name, folder, words, clock
        self.path = folder.parent / f"{name}.log"
        self.log = self.path.open("ab")
        self.process: subprocess.Popen | None = None
        self.starts, self.samples = 0, []
        self.start()

    def start(self) -> None:
        """Start the process."""
        env = environment()
        if self.clock is not None:
            self.clock.write_text("0\n")
            env |= {"LD_PRELOAD": str(self.clock.parent / CLOCK), "SOAK_CLOCK": str(self.clock)}
        self.process = subprocess.Popen(
            self.words, cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.starts += 1

    def keep(self) -> None:
        """Start the process again if it has ended."""
        if self.process.poll() is not None:
            self.start()

    def signal(self, number: int) -> None:
        """Send a signal to the process, if it runs."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def sample(self, at: float) -> None:
        """Note the memory and the open files of the process."""
        folder = Path("/proc") / str(self.process.pid)
        try:
            pages = int((folder / "statm").read_text().split()[1])
            files = len(list((folder / "fd").iterdir()))
        except (OSError, IndexError):
            return
        self.samples.append((at, self.process.pid, pages * os.sysconf("SC_PAGE_SIZE"), files))

    def end(self) -> None:
        """Stop the process."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Wait until the log has a text."""
        end = monotonic() + seconds
        while text not in self.path.read_text(errors="replace"):
            if monotonic() > end:
                raise RuntimeError(f"{self.name} does not say {text!r}")
            sleep(0.1)
