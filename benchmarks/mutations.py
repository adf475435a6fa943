"""Mutants of what security rests on: each must fail the tests that are named for it.

    python benchmarks/mutations.py [--only WORD ...]

Each mutant changes a copy of the packages, and the named tests run on that copy. The unchanged copy
runs all these tests first. Survivors are printed; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]
COPIED = ("mpc", "protocols", "vertibayes", "tests", "examples", "pyproject.toml")
PASSED, FAILED = 0, 1  # exit statuses of pytest


def copied(folder: Path) -> Path:
    """Copy the packages and their tests."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder


def status_of(folder: Path, tests: Sequence[str]) -> int:
    """Run tests on a copy; return pytest's exit status."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", *tests]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, check=False
    ).returncode


def changed(text: str, mutant: Mutant) -> str:
    """Return the text of a file with a mutant's changes.

    Raises
    ------
    ValueError
        If a text that is replaced is not in the file exactly once.
    """
    for before, after in mutant.changes:
        if (count := text.count(before)) != 1:
            raise ValueError(
                f"{mutant.name}: {mutant.file} must have {before!r} once, got {count} times; "
                "correct benchmarks/mutants.py"
            )
        text = text.replace(before, after)
    return text


def outcome(folder: Path, mutant: Mutant) -> str:
    """Apply a mutant, run its tests, and take it back."""
    path = folder / mutant.file
    original = path.read_text()
    path.write_text(changed(original, mutant))
    try:
        status = status_of(folder, mutant.tests)
    finally:
        path.write_text(original)
    return {PASSED: "survives", FAILED: "killed"}.get(status, f"not tested (pytest: {status})")


def main() -> None:
    """Run the mutants."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="words in the mutants' names")
    words = parser.parse_args().only
    mutants = [mutant for mutant in MUTANTS if any(word in mutant.name for word in words)]
    with tempfile.TemporaryDirectory() as name:
        folder, start = copied(Path(name)), monotonic()
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        if status_of(folder, tests) != PASSED:
            sys.exit("the tests do not pass without a mutant")
        outcomes = {}
        for mutant in mutants:
            outcomes[mutant.name] = outcome(folder, mutant)
            print(f"{outcomes[mutant.name]:10} {mutant.name}", flush=True)
    survivors = [name for name, result in outcomes.items() if result != "killed"]
    print(f"{len(mutants)} mutants, {len(survivors)} not killed, {monotonic() - start:.0f} s")
    for name in survivors:
        print(f"  {name}: {outcomes[name]}")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
