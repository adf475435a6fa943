"""The approvals of a site: one file for each contract that its owner has approved or declined.

`vertibayes approve` writes ``approved/DIGEST.json`` into the site's folder, with the contract, who
approved it and when; `vertibayes decline` writes ``approved/DIGEST.declined``. The site's process
reads them at each query of a run: an approval is valid as soon as its file is there, and a
withdrawal stops a run at its next query.

If the site's policy names a second person's key, an approval is valid with this person's signature
over all that it says and over the site's name. Whoever may edit the site's files can also remove
the key from its policy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from vertibayes_mpc.randomness import KeyPair, label
from vertibayes_mpc.rounds import Party
from vertibayes_mpc.signing import SigningKey, is_signed
from vertibayes_protocols.approval import (
    Approved,
    Consent,
    ContractSteps,
    Takes,
    UnusableApprovalError,
)
from vertibayes_protocols.canonical import canonical_json
from vertibayes_protocols.contract import MOST_BYTES, Contract
from vertibayes_protocols.errors import printable
from vertibayes_protocols.storage.whole_file import (
    OLDEST,
    NewerFormatError,
    check_format,
    check_own,
    write_whole,
)

Learner: TypeAlias = Callable[[Contract], ContractSteps]

FORMAT = 1
DECLINED, WITHDRAWN = ".declined", ".withdrawn"
TEXTS = "purpose", "until", "version", "permit"  # of an approval, which may not have them
UNSIGNED = (
    "is not approved here yet: the policy of the site asks for a second person's consent, which "
    "{}; the second person can give it (`vertibayes approve study.toml --second KEY`)"
)


class Approval(NamedTuple):
    """A contract, who approved it, and the date."""

    contract: Contract
    approver: str
    date: str
    data: bytes = b""  # as of `Approved`, and the next ones
    purpose: str = ""
    until: str = ""
    version: str = ""
    permit: str = ""
    second: Consent | None = None

    def approved(self, steps: ContractSteps | None = None) -> Approved:
        """Return the approved study, with its steps."""
        takes = Takes() if steps is None else steps.takes
        return Approved(steps=steps, takes=takes, **self._asdict())


class Declined(NamedTuple):
    """A contract that a site's owner has declined, who did, when and why."""

    contract: Contract
    by: str
    date: str
    because: str  # which the analyst reads


Record = TypeVar("Record", Approval, Declined)


@dataclass(frozen=True)
class ApprovalFolder:
    """Approvals by digest, as a site's process reads them."""

    folder: Path  # the folder with the approvals; it need not exist
    learner: Learner  # (contract) -> its steps
    site: Party = ""
    second: bytes = b""  # the key of the person who must consent too; empty if nobody must

    def __call__(self, digest: bytes) -> Approved | None:
        """Return the approved study of a digest, as `valid_approval`."""
        approval = valid_approval(self.folder, digest, self.site, self.second)
        if approval is None:
            return None
        contract = approval.contract
        return approval.approved(None if contract.queries else self.learner(contract))


def valid_approval(folder: Path, digest: bytes, site: Party, second: bytes) -> Approval | None:
    """Return the approval of a digest with which a run may begin; None if it is not approved.

    An `UnusableApprovalError` says that the owner has declined the study, or that the consent of
    the second person, whose key is `second`, is missing.
    """
    path = path_of(folder, digest)
    if not path.exists():
        if (declined := path.with_suffix(DECLINED)).exists():
            because = printable(read_declined(declined).because)
            raise UnusableApprovalError(f"was declined by its owner: {because}")
        return None
    approval = read_approval(path)
    if not second:
        return approval._replace(second=None)  # which nobody checks
    if missing := missing_consent(approval, site, second):
        raise UnusableApprovalError(UNSIGNED.format(missing))
    return approval


def as_date(text: str) -> str:
    """Return a day, as 2026-01-31, or refuse a text that is not one."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(f"a day must be written as 2026-01-31, got {text!r}")
    return date.fromisoformat(text).isoformat()


def path_of(folder: Path, digest: bytes) -> Path:
    """Return the file of an approval."""
    return folder / f"{digest.hex()}.json"


def consented(approval: Approval, site: Party, by: str, day: str, keys: KeyPair) -> Approval:
    """Return an approval with a second person's consent to it, at one site."""
    signature = SigningKey.of(keys).sign(_signed(approval, site, Consent(by, day)))
    return approval._replace(second=Consent(by, day, signature))


def missing_consent(approval: Approval, site: Party, public: bytes) -> str:
    """Return what is wrong with the second person's consent to an approval; empty if nothing is."""
    second = approval.second
    if second is None:
        return "is missing"
    is_valid = is_signed(_signed(approval, site, second), second.signature, public)
    return "" if is_valid else "is not for this approval, or not by the person whom it names"


def _signed(approval: Approval, site: Party, second: Consent) -> bytes:
    """Return what a second person signs: all that an approval says, and where."""
    content = _content(approval._replace(second=None))
    content |= {"contract": approval.contract.digest.hex(), "site": site}
    content |= {"by": second.by, "on": second.date}
    return label("consent of a second person", canonical_json(content))


def read_approval(path: Path) -> Approval:
    """Read an approval."""
    return _read(path, _approval)


def read_declined(path: Path) -> Declined:
    """Read what an owner has declined."""
    return _read(path, _declined)


def _read(path: Path, make: Callable[[dict[str, Any]], Record]) -> Record:
    check_own(path)
    if path.stat().st_size > 2 * MOST_BYTES:
        raise ValueError(f"{path}: it has more than {2 * MOST_BYTES:,} bytes")
    try:
        content = json.loads(path.read_bytes())
        check_format(path, content.get("format", OLDEST), FORMAT)
        record = make(content)
    except NewerFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"not a valid approval ({error}): approve the study again"
        raise ValueError(f"{path}: {reason}") from None
    if record.contract.digest.hex() != path.stem:
        reason = "its contract has another digest than its name: approve the study again"
        raise ValueError(f"{path}: {reason}")
    return record


def _approval(content: dict[str, Any]) -> Approval:
    texts = {name: content.get(name, "") for name in TEXTS}
    second = content.get("second")
    if second is not None:
        by, day, signature = second["by"], second["date"], bytes.fromhex(second["signature"])
        second, texts = Consent(by, day, signature), {**texts, "by": by, "day": day}
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"{', '.join(texts)} must be texts")
    approval = Approval(
        Contract.from_json(content["contract"]),
        str(content["approver"]),
        str(content["date"]),
        bytes.fromhex(content.get("data", "")),
        **{name: texts[name] for name in TEXTS},
        second=second,
    )
    if approval.until:
        as_date(approval.until)
    return approval


def _declined(content: dict[str, Any]) -> Declined:
    texts = [content[name] for name in Declined._fields[1:]]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{', '.join(Declined._fields[1:])} must be texts")
    return Declined(Contract.from_json(content["contract"]), *texts)


def write_approval(folder: Path, approval: Approval) -> Path:
    """Write an approval, whole or not at all; only the owner can read or write it."""
    path = path_of(folder, approval.contract.digest)
    _write(path, _content(approval), approval.contract)
    path.with_suffix(DECLINED).unlink(missing_ok=True)
    return path


def write_declined(folder: Path, declined: Declined) -> Path:
    """Write what an owner declines, in place of an earlier approval, which is withdrawn."""
    approved = path_of(folder, declined.contract.digest)
    if approved.exists():
        approved.rename(approved.with_suffix(WITHDRAWN))
    path = approved.with_suffix(DECLINED)
    content = {name: getattr(declined, name) for name in Declined._fields[1:]}
    _write(path, content, declined.contract)
    return path


def _content(approval: Approval) -> dict[str, Any]:
    """Return what an approval says of its contract, as JSON data."""
    content: dict[str, Any] = {"approver": approval.approver, "date": approval.date}
    content |= {"data": approval.data.hex()} if approval.data else {}
    content |= {name: text for name in TEXTS if (text := getattr(approval, name))}
    if (second := approval.second) is not None:
        signature = second.signature.hex()
        content["second"] = {"by": second.by, "date": second.date, "signature": signature}
    return content


def _write(path: Path, content: dict[str, Any], contract: Contract) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole = {"format": FORMAT, **content, "contract": contract.as_json()}
    write_whole(path, json.dumps(whole, indent=1).encode() + b"\n")


def approvals_in(folder: Path, suffix: str = ".json") -> list[Path]:
    """Return the files of all approvals, or of all that is declined, the oldest first."""
    return sorted(folder.glob(f"*{suffix}"), key=lambda path: (path.stat().st_mtime, path.name))


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
