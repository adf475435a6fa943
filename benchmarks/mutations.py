"""Mutants of what security rests on: each must fail the tests that are named for it.

    python benchmarks/mutations.py [--only WORD ...]

Each mutant changes a copy of the packages, and the named tests run on that copy. The unchanged copy
runs all these tests first. Survivors are printed; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from time import monotonic

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]
COPIED = ("mpc", "protocols", "vertibayes", "tests", "examples", "pyproject.toml")
IMPORTED = {"vertibayes_mpc", "vertibayes_protocols", "vertibayes", "tests"}
PASSED, FAILED, BROKEN = 0, 1, 99  # exit statuses of pytest, and if it does not run
REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"  # what is imported before pytest
OPTIONS = ("-x", "-p", "no:xdist", "-W", REWRITTEN)


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


def preload() -> None:
    """Import what the tests import, and forget this project: its copies are imported later."""
    sys.path.insert(0, str(ROOT))
    for name in ("pytest", "hypothesis", "vertibayes.cli", "vertibayes_protocols.federation"):
        import_module(name)
    sys.path.remove(str(ROOT))
    for name in [name for name in sys.modules if name.partition(".")[0] in IMPORTED]:
        del sys.modules[name]


def status_of(folder: Path, tests: Sequence[str]) -> int:
    """Run tests on a copy, in a process that has imported all other packages; return the status."""
    child = os.fork()
    if not child:
        status = BROKEN
        try:
            status = _run(folder, tests)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(folder: Path, tests: Sequence[str]) -> int:
    import pytest

    os.chdir(folder)
    sys.path[:0] = [str(folder), str(folder / "mpc"), str(folder / "protocols")]
    sys.dont_write_bytecode = True
    with Path(os.devnull).open("w") as no, redirect_stdout(no), redirect_stderr(no):
        return int(pytest.main([*OPTIONS, *tests]))


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
    preload()
    with tempfile.TemporaryDirectory() as name:
        folder, start = copied(Path(name)), monotonic()
        for test in sorted({test for mutant in mutants for test in mutant.tests}):
            if status_of(folder, [test]) != PASSED:
                sys.exit(f"{test} does not pass without a mutant")
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
