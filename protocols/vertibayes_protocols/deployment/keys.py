"""Files of private keys: one key in each file, which only its owner can read."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

from vertibayes_mpc.randomness import KEY_BYTES, KeyPair, SystemRandomness
from vertibayes_protocols.storage.whole_file import create_own

HEAD = "vertibayes private key, format 1: keep it secret\n"


def make_private(path: Path) -> KeyPair:
    """Make a private key, and write it as `write_private` does."""
    keys = KeyPair.generate(SystemRandomness())
    write_private(path, keys)
    return keys


def write_private(path: Path, keys: KeyPair) -> None:
    """Write a private key to a new file that only its owner can read."""
    write_secret(path, (HEAD + base64.b64encode(keys.private).decode() + "\n").encode())


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read; as `write_private`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = create_own(path)
    except FileExistsError:
        raise ValueError(f"{path} exists: a key is never overwritten") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    with file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_private(path: Path) -> KeyPair:
    """Read a private key."""
    check_secret(path)
    text = path.read_text(encoding="ascii", errors="replace")
    try:
        private = base64.b64decode(text.removeprefix(HEAD).strip(), validate=True)
    except ValueError:
        private = b""
    if not text.startswith(HEAD) or len(private) != KEY_BYTES:
        raise ValueError(f"{path} is not a private key that `vertibayes keygen` made")
    return KeyPair(private)


def check_secret(path: Path) -> None:
    """Refuse a file that does not exist, or that users other than its owner may read."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is not a file")
    if mode & 0o077:
        raise ValueError(f"other users can read {path}: chmod 600 {path}")
