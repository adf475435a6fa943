"""A PostgreSQL server for the tests: Debian's programs, in a folder of their own, without network.

The server listens at a Unix socket in its folder, and ends with the tests. It cannot run as root:
root runs it as another user.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30.0


class NoServerError(Exception):
    """PostgreSQL cannot run here; the message says why."""


@dataclass(frozen=True)
class Server:
    """A running server: its URL without a password, and the password."""

    url: str
    password: str
    process: subprocess.Popen[bytes]


def programs() -> Path:
    """Return the folder of initdb and postgres, of the newest version."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda f: f.parent.name.zfill(4)
    )
    on_path = shutil.which("initdb")
    folders += [Path(on_path).resolve().parent] if on_path else []
    good = [f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()]
    if not good:
        raise NoServerError("PostgreSQL is not installed: apt-get install postgresql")
    return good[-1]


def user() -> dict[str, object]:
    """Return under which user the server runs, as `subprocess.Popen` takes it."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoServerError("PostgreSQL does not run as root, and there is no user postgres or nobody")


@contextmanager
def running() -> Iterator[Server]:
    """Start a server; stop it and remove its files at the end."""
    where, owner = programs(), user()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        password = secrets.token_hex(8) + "%&"
        (folder / "password").write_text(password + "\n")
        for path in (folder, folder / "password"):
            os.chown(path, int(owner.get("user", -1)), int(owner.get("group", -1)))
        made = ["--no-sync", "--no-locale", "-E", "UTF8", "-U", "clinic", "-A", "scram-sha-256"]
        done = subprocess.run(
            [where / "initdb", "-D", folder / "data", *made, f"--pwfile={folder / 'password'}"],
            cwd=folder, capture_output=True, text=True, check=False, **owner,
        )  # fmt: skip
        if done.returncode:
            raise NoServerError(f"initdb failed: {done.stderr.strip()}")
        with _server(where, folder, owner) as process:
            yield Server(f"postgresql://clinic@/postgres?host={folder}", password, process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(
    where: Path, folder: Path, owner: dict[str, object]
) -> Iterator[subprocess.Popen[bytes]]:
    options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "log_min_messages=fatal"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [where / "postgres", "-D", folder / "data", "-k", folder, *options],
            cwd=folder, stdout=log, stderr=log, **owner,
        )  # fmt: skip
    try:
        _wait(where, folder, process)
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # ends sessions and stops
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(where: Path, folder: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while subprocess.run([where / "pg_isready", "-q", "-h", folder], check=False).returncode:
        if process.poll() is not None or time.monotonic() > end:
            raise NoServerError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
        time.sleep(0.05)
