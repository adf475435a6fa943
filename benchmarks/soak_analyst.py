"""An analyst of the soak: one process that runs a study again and again by the command line.

    python benchmarks/soak_analyst.py RESULTS.jsonl UNTIL STUDY.toml

UNTIL is a time in Unix seconds. After each run it adds a line of JSON: study, begin, seconds, exit
status, standard error, and the digests of structure and model. A study of exact tables outside
approved studies begins again in an empty folder after each success.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import sys
from pathlib import Path
from time import time


def run_once(study: Path, out: Path) -> dict:
    """Run a study; return what came of it."""
    from vertibayes.cli import main

    shutil.rmtree(out, ignore_errors=True)
    error, begin = io.StringIO(), time()
    with contextlib.redirect_stderr(error):
        try:
            main(["learn", str(study), "--out", str(out), "--quiet"])
            status = 0
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0
    made = digests(out) if status == 0 else {}
    return {"study": study.stem, "begin": begin, "seconds": time() - begin, "status": status,
            "error": error.getvalue()[-2000:], "made": made}  # fmt: skip


def digests(out: Path) -> dict[str, str]:
    """Return the digests of the files that a run writes and that depend on the records."""
    names = ("structure.json", "model.json")
    return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}


def run_until(results: Path, end: float, study: Path) -> None:
    """Run a study again and again until the time is up."""
    own = study.parent / study.stem
    is_free = "\n[release]" not in study.read_text()
    while time() < end:
        done = run_once(study, own.with_name(f"{study.stem}-results"))
        with results.open("a") as file:
            file.write(json.dumps(done) + "\n")
        if is_free and done["status"] == 0:
            shutil.rmtree(own, ignore_errors=True)
        if "used up" in done["error"]:
            return


if __name__ == "__main__":
    run_until(Path(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
