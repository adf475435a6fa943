"""A risk appetite: the limits by which an output checker judges a release.

SATRE proposes that each project states its appetite in a file that programs read (issue 329 of
sa-tre/satre-specification): the smallest count, degrees of freedom, whether zeros are allowed. We
found no keys in it; these are those of ACRO 1.0, whose `default.yaml` can be given as it is: one
`key: value` in a line.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vertibayes_protocols.release import MOST_FEWEST, Rule

NO_DOMINANCE = "dominance does not apply to counts: each record adds 1"
NO_MODEL = "no regression and no survival table is released"
NOISE = "each cell has noise"
UNUSED = {  # keys that are recorded, and why no verdict uses them
    "safe_dof_threshold": NO_MODEL,
    "safe_nk_n": NO_DOMINANCE,
    "safe_nk_k": NO_DOMINANCE,
    "safe_pratio_p": NO_DOMINANCE,
    "check_missing_values": "a missing value is a state of a table, or its record is not counted",
    "survival_safe_threshold": NO_MODEL,
}
FLAGS = ("zeros_are_disclosive", "check_missing_values")
KEYS = ("safe_threshold", "zeros_are_disclosive", *UNUSED)


@dataclass(frozen=True)
class Appetite:
    """The limits of a release, and what a file says of them."""

    threshold: int  # the smallest count that may be shown
    zeros: bool = True  # whether an exact count of 0 is for a person to judge
    given: Mapping[str, Any] = field(default_factory=dict)  # all keys of the file
    digest: str = ""  # of the file, SHA-256; empty without a file

    def as_json(self, rule: Rule) -> Mapping[str, Any]:
        """Return what a release records of the file; without one, nothing."""
        if not self.digest:
            return {}
        unused = dict(UNUSED)
        if rule.is_noisy:
            unused |= {"safe_threshold": NOISE, "zeros_are_disclosive": NOISE}
        elif rule.kind != "exact":
            unused["zeros_are_disclosive"] = "a released 0 can be a hidden count"
        unused = {key: why for key, why in unused.items() if key in self.given}
        content = {"sha256": self.digest, "content": self.given, "not_applicable": unused}
        return {"risk_appetite": content}


def read_appetite(path: Path) -> Appetite:
    """Read a file with a risk appetite.

    Raises
    ------
    ValueError
        If it cannot be read; the message names the line and the key.
    """
    try:
        content = path.read_bytes()
        lines = content.decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    given: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text in ("", "---", "..."):
            continue
        key, colon, value = (part.strip() for part in text.partition(":"))
        try:
            if not colon:
                raise ValueError("expected `key: value`")
            if key not in KEYS:
                raise ValueError(f"{key}: not a known key; known are {', '.join(KEYS)}")
            if key in given:
                raise ValueError(f"{key}: has a value above")
            given[key] = _value(key, value)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    if "safe_threshold" not in given:
        raise ValueError(f"{path}: safe_threshold: missing; it is the smallest count to be shown")
    zeros = given.get("zeros_are_disclosive", True)
    return Appetite(given["safe_threshold"], zeros, given, hashlib.sha256(content).hexdigest())


def _value(key: str, text: str) -> float | bool:
    if key in FLAGS:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{key}: must be true or false, got {text!r:.40}")
        return text.lower() == "true"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_FEWEST:
        raise ValueError(f"{key}: must be a number from 0 to {MOST_FEWEST}, got {text!r:.40}")
    if key == "safe_threshold" and (value < 1 or value % 1):
        raise ValueError(f"{key}: must be a whole number of at least 1, got {text!r:.40}")
    return value if value % 1 else int(value)
