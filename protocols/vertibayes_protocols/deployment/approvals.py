"""The approvals of a site: one file for each contract that its owner has approved.

`vertibayes approve` writes ``approved/DIGEST.json`` into the site's folder, with the contract, who
approved it and when. The site's process reads the file at each query of a run: an approval is valid
as soon as its file is there, and a withdrawal stops a run at its next query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NamedTuple, TypeAlias

from vertibayes_protocols.approval import Approved, ContractSteps, Takes
from vertibayes_protocols.contract import MOST_BYTES, Contract
from vertibayes_protocols.storage.whole_file import (
    OLDEST,
    NewerFormatError,
    check_format,
    check_own,
    write_whole,
)

Learner: TypeAlias = Callable[[Contract], ContractSteps]

FORMAT = 1
WITHDRAWN = ".withdrawn"
TEXTS = "purpose", "until", "version"  # of an approval, which may not have them


class Approval(NamedTuple):
    """A contract, who approved it, and the date."""

    contract: Contract
    approver: str
    date: str
    data: bytes = b""  # as of `Approved`, and the next three
    purpose: str = ""
    until: str = ""
    version: str = ""

    def approved(self, steps: ContractSteps | None = None) -> Approved:
        """Return the approved study, with its steps."""
        takes = Takes() if steps is None else steps.takes
        return Approved(steps=steps, takes=takes, **self._asdict())


@dataclass(frozen=True)
class ApprovalFolder:
    """Approvals by digest, as a site's process reads them."""

    folder: Path  # the folder with the approvals; it need not exist
    learner: Learner  # (contract) -> its steps

    def __call__(self, digest: bytes) -> Approved | None:
        """Return the approved study of a digest; None if it is not approved."""
        path = path_of(self.folder, digest)
        if not path.exists():
            return None
        approval = read_approval(path)
        contract = approval.contract
        return approval.approved(None if contract.queries else self.learner(contract))


def as_date(text: str) -> str:
    """Return a day, as 2026-01-31, or refuse a text that is not one."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(f"a day must be written as 2026-01-31, got {text!r}")
    return date.fromisoformat(text).isoformat()


def path_of(folder: Path, digest: bytes) -> Path:
    """Return the file of an approval."""
    return folder / f"{digest.hex()}.json"


def read_approval(path: Path) -> Approval:
    """Read an approval."""
    check_own(path)
    if path.stat().st_size > 2 * MOST_BYTES:
        raise ValueError(f"{path}: it has more than {2 * MOST_BYTES:,} bytes")
    try:
        content = json.loads(path.read_bytes())
        check_format(path, content.get("format", OLDEST), FORMAT)
        contract = Contract.from_json(content["contract"])
        data = bytes.fromhex(content.get("data", ""))
        texts = [content.get(name, "") for name in TEXTS]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{', '.join(TEXTS)} must be texts")
        approver, given = str(content["approver"]), str(content["date"])
        approval = Approval(contract, approver, given, data, *texts)
        if approval.until:
            as_date(approval.until)
    except NewerFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"not a valid approval ({error}): approve the study again"
        raise ValueError(f"{path}: {reason}") from None
    if approval.contract.digest.hex() != path.stem:
        reason = "its contract has another digest than its name: approve the study again"
        raise ValueError(f"{path}: {reason}")
    return approval


def write_approval(folder: Path, approval: Approval) -> Path:
    """Write an approval, whole or not at all; only the owner can read or write it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = path_of(folder, approval.contract.digest)
    by, contract = {"approver": approval.approver, "date": approval.date}, approval.contract
    data = {"data": approval.data.hex()} if approval.data else {}
    data |= {name: text for name in TEXTS if (text := getattr(approval, name))}
    content = {"format": FORMAT, **by, **data, "contract": contract.as_json()}
    write_whole(path, json.dumps(content, indent=1).encode() + b"\n")
    return path


def approvals_in(folder: Path) -> list[Path]:
    """Return the files of all approvals, the oldest first."""
    return sorted(folder.glob("*.json"), key=lambda path: (path.stat().st_mtime, path.name))


def withdraw(folder: Path, start: str) -> Path:
    """Withdraw an approval: its file stays under another name, which no process reads."""
    begins = "".join(start.split()).lower()
    chosen = [path for path in approvals_in(folder) if begins and path.stem.startswith(begins)]
    if len(chosen) != 1:
        how_many = "several approvals begin" if chosen else "no approval begins"
        raise ValueError(
            f"{how_many} with the digest {start!r}: `vertibayes approve --list` shows all digests"
        )
    return chosen[0].rename(chosen[0].with_suffix(WITHDRAWN))
