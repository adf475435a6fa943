"""The question before a digest is accepted: its first digits, typed by a person."""

from __future__ import annotations

import sys
from pathlib import Path

from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.pins import digest_of_text

FIRST_DIGITS = 16  # of the digest, which the person types: 64 bits, which nobody searches


def agree(digest: bytes, given: str | None, path: Path, what: str, reader: str) -> None:
    """Compare the digest of a file with the one that is given, or ask for its beginning."""
    if given is None:
        confirm(digest, what, reader, "--digest DIGEST")
    elif digest_of_text(given) != digest:
        raise ValueError(
            f"--digest is not that of {path}: {grouped_digest(digest)}; compare all digits with "
            f"{reader}"
        )


def confirm(digest: bytes, what: str, reader: str, option: str) -> None:
    """Ask for the first digits of a digest: who types them has looked at it."""
    if not sys.stdin.isatty():
        raise ValueError(f"the input is not a terminal: specify {option}")
    sys.stdout.write(
        f"\nTo {what}, type the first {FIRST_DIGITS} digits of the digest that {reader} has "
        "read to you: "
    )
    sys.stdout.flush()
    typed = "".join(sys.stdin.readline().split()).lower()
    if typed != digest.hex()[:FIRST_DIGITS]:
        raise ValueError(
            "nothing is changed: the digest does not begin with the digits that you typed; compare "
            f"all of it with {reader} by telephone"
        )
