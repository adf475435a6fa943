"""What a run of an approved study has shown, in a file of the analyst: a killed run is resumed.

    first line    {"format": 1, "contract": digest, "study": id}
    each step     {"won": [...], "decided": [...]}
    last line     {"over": true}, when the results are written

A line is on disk before a learner sees its winners. A crash can cut the last line short: it is
dropped, and the sites show the winners again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from vertibayes_protocols.opening import new_study
from vertibayes_protocols.storage.run_record import Shown
from vertibayes_protocols.storage.whole_file import (
    GrowingFile,
    NewerFormatError,
    check_format,
    lock_study,
)

FORMAT = 1


class RunFile:
    """The last run of a contract, on disk."""

    def __init__(self, path: Path, contract: bytes) -> None:
        self.path = path
        self.seen: list[Shown] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock_study(descriptor, path)
            self.study, whole = self._load(contract)
            self._file = GrowingFile(descriptor, path, whole)
            self._file.cut()
            if not self.study:
                self.study = new_study()
                head = {"format": FORMAT, "contract": contract.hex(), "study": self.study.hex()}
                self._write(head)
        except BaseException:
            os.close(descriptor)
            raise

    def add(self, shown: Shown) -> None:
        """Write what a step has shown; it is on disk when this returns."""
        self._write({"won": list(shown.won), "decided": list(shown.decided)})
        self.seen.append(shown)

    def finish(self) -> None:
        """Note that the results of the run are written: the next run is another one."""
        self._write({"over": True})

    def close(self) -> None:
        """Let another process use the file."""
        self._file.close()

    def __enter__(self) -> RunFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self, contract: bytes) -> tuple[bytes, int]:
        """Read the run; return the id of its study and where its last whole line ends.

        The id is empty, and the end is 0, if another run must begin.
        """
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            head, *steps = [json.loads(line) for line in whole.splitlines()] or [{"format": FORMAT}]
            check_format(self.path, head["format"], FORMAT)
            is_same = head.get("contract") == contract.hex()
            if is_same and not (steps and "over" in steps[-1]):
                self.seen = [_shown(step) for step in steps]
                return bytes.fromhex(head["study"]), len(whole)
        except NewerFormatError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.path} is not a file of a run: {error}") from None
        return b"", 0

    def _write(self, line: dict[str, Any]) -> None:
        self._file.append(json.dumps(line).encode() + b"\n")


def _shown(step: dict[str, Any]) -> Shown:
    return Shown(tuple(map(int, step["won"])), tuple(map(bool, step["decided"])))
