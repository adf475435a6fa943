"""Read the files of a run that the page shows."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertibayes.json_content import read_json
from vertibayes.report.page.entries import MISSING, Entry

SUMMARY = "summary.json"
FILES = (
    SUMMARY,
    "structure.json",
    "model.json",
    "naive_bayes.json",
    "validation.json",
    "calibration.json",
    "network.json",
    "ledger.json",
    "counts.json",
)
PICTURES = "calibration.svg", "network.svg", "validation-*.svg"
MOST_BYTES = 200_000_000  # of a file that is read
TABLES = "tables.csv"  # of release/: one row for each released table


@dataclass(frozen=True)
class Results:
    """The files of a run."""

    files: Mapping[str, Entry]  # the content of each JSON file
    pictures: Mapping[str, str]  # the text of each picture that is shown as it is
    release: list[dict[str, str]]  # the rows of release/tables.csv
    names: tuple[str, ...]  # the names of all files in the folder, sorted

    @classmethod
    def read(cls, folder: Path, mark: str = "") -> Results:
        """Read a folder of results; `mark` comes before its files' names in what the page shows."""
        if not folder.is_dir():
            what = "a file" if folder.exists() else "no such folder"
            raise ValueError(f"{folder}: {what}; specify a folder that a run has written")
        if not (folder / SUMMARY).is_file():
            raise ValueError(
                f"{folder}: it has no {SUMMARY}; specify the folder of a run that has ended (the "
                "--out of `learn`, `nb` or `calibrate`)"
            )
        files = {name: Entry(mark + name, _content(folder / name)) for name in FILES}
        variables = files[SUMMARY]["variables"].value
        if not isinstance(variables, dict):
            raise ValueError(f"{folder / SUMMARY}: not the summary of a run: it has no variables")
        pictures = {
            path.name: path.read_text(encoding="utf-8", errors="replace")
            for pattern in PICTURES
            for path in sorted(folder.glob(pattern))
            if _is_there(path)
        }
        release = folder / "release"
        _check_link(release)
        return cls(files, pictures, _rows(release / TABLES), _names(folder))

    @property
    def summary(self) -> Entry:
        """The content of summary.json."""
        return self.files[SUMMARY]

    @property
    def command(self) -> str:
        """The command that wrote the folder: "learn", "nb" or "calibrate"."""
        if (command := self.summary["command"]).exists:
            return command.text
        if self.files["calibration.json"].exists:
            return "calibrate"
        return "nb" if self.summary["method"].exists else "learn"

    @property
    def sites(self) -> dict[str, str]:
        """The site of each variable that has one; those of several sites have all their names."""
        sites: dict[str, list[str]] = {}
        for site, names in self.summary["sites"].items():
            for name in names.texts():
                sites.setdefault(name, []).append(site)
        return {name: ", ".join(of) for name, of in sites.items()}

    @property
    def is_protected(self) -> bool:
        """Whether a rule that hides small counts, or noise, protects what the page shows."""
        rule, fewest = self.summary["release"]["rule"], self.summary["release"]["rule"]["fewest"]
        hides = rule["kind"].value in ("cut", "rounded")
        hides = hides and isinstance(fewest.value, int) and fewest.value > 1
        return hides or self.is_noisy or self.summary["promise"]["sentence"].exists

    @property
    def is_noisy(self) -> bool:
        """Whether the released tables have noise."""
        return self.summary["release"]["rule"]["kind"].value in ("laplace", "gaussian")

    @property
    def cut_below(self) -> int | None:
        """Below which count the rule has cut; None if it has not."""
        counts = self.files["counts.json"]
        fewest = counts["fewest"].value
        return fewest if counts["kind"].value == "cut" and isinstance(fewest, int) else None


def _content(path: Path) -> Any:
    return read_json(path) if _is_there(path) else MISSING


def _is_there(path: Path) -> bool:
    """Whether there is a file, which a folder of another person may have by a link only."""
    _check_link(path)
    if not path.is_file():
        return False
    if (given := path.stat().st_size) > MOST_BYTES:
        raise ValueError(f"{path}: a file of {given:,} bytes; expected at most {MOST_BYTES:,}")
    return True


def _check_link(path: Path) -> None:
    """Refuse a link: the page would show a file of whoever makes it to whoever reads it."""
    if path.is_symlink():
        raise ValueError(f"{path}: a symbolic link; put the file itself into the folder")


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; nothing if there is no such file."""
    if not _is_there(path):
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {str(name): str(value) for name, value in row.items()} for row in csv.DictReader(file)
        ]


def _names(folder: Path) -> tuple[str, ...]:
    """Return the names of the files of a folder; those of a folder in it as one name."""
    names = [path.name + "/" * path.is_dir() for path in folder.iterdir()]
    return tuple(sorted(name for name in names if not name.startswith(".")))
