"""The question before a digest is accepted: its first digits, typed by a person."""

from __future__ import annotations

import sys

FIRST_GROUP = 4  # digits of the digest, which the person types


def confirm(digest: bytes, what: str, reader: str, option: str) -> None:
    """Ask for the first digits of a digest: who types them has looked at it.

    Parameters
    ----------
    digest : bytes
    what : str
        What the answer does: a verb.
    reader : str
        Who reads the digest to the person.
    option : str
        What to specify if nobody can be asked.

    Raises
    ------
    ValueError
        If the input is not a terminal, or other digits are typed.
    """
    if not sys.stdin.isatty():
        raise ValueError(f"the input is not a terminal: specify {option}")
    sys.stdout.write(
        f"\nTo {what}, type the first {FIRST_GROUP} digits of the digest that {reader} has "
        "read to you: "
    )
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() != digest.hex()[:FIRST_GROUP]:
        raise ValueError(
            "nothing is changed: the digest does not begin with the digits that you typed; compare "
            f"all of it with {reader} by telephone"
        )
