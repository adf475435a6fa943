"""Install the wheel in an empty environment on each Python here, and use it outside the repository.

    python -m releasing.wheel FOLDER

FOLDER has one wheel and one source distribution, as `make wheel` writes them. In each environment
all modules are imported whose libraries are there, and `vertibayes demo` runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from releasing.check import ROOT, git

PACKAGES = ("mpc/vertibayes_mpc", "protocols/vertibayes_protocols", "vertibayes")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
IMPORTS = """
import importlib, pkgutil, pathlib, sys
count = 0
for package in ("vertibayes_mpc", "vertibayes_protocols", "vertibayes"):
    module = importlib.import_module(package)
    assert pathlib.Path(module.__file__).is_relative_to(sys.prefix), module.__file__
    for part in pkgutil.walk_packages(module.__path__, package + "."):
        needs_extra = part.name.startswith("vertibayes.sklearn") or part.name.endswith(".cells")
        if needs_extra or part.name.endswith(".__main__"):
            continue
        importlib.import_module(part.name)
        count += 1
print(count, "modules,", sys.version.split()[0])
"""


def pythons() -> Iterator[Path]:
    """Yield the newest Python of each version that is on the PATH or that pyenv has."""
    for version in VERSIONS:
        inside = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")
        for candidate in (f"python{version}", *map(str, sorted(inside))):
            code = "import sys; print(sys.executable)"
            try:
                text = subprocess.check_output(
                    [candidate, "-c", code], text=True, stderr=subprocess.DEVNULL
                )
            except (OSError, subprocess.CalledProcessError):
                continue
            yield Path(text.strip())
            break


def contents(wheel: Path) -> dict[str, int]:
    """Return the checksums of a wheel's files by name."""
    with zipfile.ZipFile(wheel) as opened:
        return {item.filename: item.CRC for item in opened.infolist()}


def in_history() -> set[str]:
    """Return the files of the packages by their names in a wheel."""
    files = git(ROOT, "ls-files", *PACKAGES).split()
    return {re.sub("^(mpc|protocols)/", "", file) for file in files} - {"vertibayes/README.md"}


def check_names(wheel: Path) -> None:
    """Check that the wheel has the files of the three packages, and no other top-level name."""
    names = set(contents(wheel))
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    if tops != {Path(package).name for package in PACKAGES}:
        raise ValueError(f"the wheel has the top-level names {sorted(tops)}")
    tracked = in_history()
    if missing := tracked - names:
        raise ValueError(f"the wheel does not have {sorted(missing)}")
    if more := {name for name in names - tracked if ".dist-info/" not in name}:
        raise ValueError(f"the wheel has files that are not in the history: {sorted(more)}")


def check_source(source: Path, wheel: Path, folder: Path) -> None:
    """Check that the source distribution, unpacked, makes the same wheel."""
    with tarfile.open(source) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)  # not in Python 3.11.2
        opened.extractall(folder)
    (unpacked,) = folder.iterdir()
    again = folder / "again"
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(again), str(unpacked)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (rebuilt,) = again.glob("*.whl")
    if contents(rebuilt) != contents(wheel):
        raise ValueError(f"{source.name} makes another wheel than {wheel.name}")


def use(python: Path, wheel: Path, folder: Path) -> None:
    """Install the wheel in an empty environment, and run what is installed."""
    started = monotonic()
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", str(wheel)], check=True)
    subprocess.run([*pip, "check"], check=True)
    installed = monotonic()
    for command in (
        ["python", "-I", "-c", IMPORTS],
        ["vertibayes", "--version"],
        ["vertibayes", "demo"],
    ):
        ran = subprocess.run(
            [str(programs / command[0]), *command[1:]],
            cwd=folder,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            env={"HOME": "/"},
        )
        print("   ", ran.stdout.strip().rpartition("\n")[2])
    seconds = f"{installed - started:.0f} s to install, {monotonic() - installed:.0f} s to run"
    print(f"ok  {python}: {seconds}")


def main(folder: Path) -> None:
    """Check the distributions of a folder."""
    os.environ.pop("PYTHONPATH", None)  # pip would take the repository for an installation
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_names(wheel)
    with tempfile.TemporaryDirectory() as made:
        check_source(source, wheel.resolve(), Path(made))
    print(f"ok  {wheel.name}: {wheel.stat().st_size // 1000} kB; {source.name} makes the same")
    found = list(pythons())
    for python in found:
        with tempfile.TemporaryDirectory() as made:
            use(python, wheel.resolve(), Path(made))
    if not found:
        raise ValueError(f"there is no Python {', '.join(VERSIONS)} on the PATH or in pyenv")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
