"""What an owner decides about a study: ``vertibayes decline``, a second person's consent, the page.

The terminal and the page show the same text: `report.sheet`.
"""

from __future__ import annotations

import sys
from getpass import getuser
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, NamedTuple

from vertibayes.cli.contracts import check_addressed, contract_of
from vertibayes.cli.earlier_studies import earlier_studies
from vertibayes.cli.outputs import write_text
from vertibayes.cli.what_leaves import own_variables, what_leaves
from vertibayes.report.ledger.text import WIDTH
from vertibayes.report.sheet.blocks import Block, blocks_of, text_of
from vertibayes.report.sheet.page import html_of
from vertibayes_protocols.approval import today
from vertibayes_protocols.deployment.approvals import Approval, Declined, write_declined
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.storage.memory import SiteMemory

MOST_BECAUSE = 500  # characters: the reason is a part of an answer to the analyst
UNDECIDED = "Not decided yet."
WAITS = "waits for the second person"


class Sheet(NamedTuple):
    """What an owner reads of a study before deciding about it."""

    own: SiteFile
    blocks: list[Block]

    @classmethod
    def of(cls, approval: Approval, own: SiteFile, memory: SiteMemory, **facts: Any) -> Sheet:
        """Return the sheet of an approval that is proposed; `facts` as of `what_leaves`."""
        contract = approval.contract
        studies = earlier_studies(own, memory, own_variables(contract, own), contract.digest)
        return cls(own, blocks_of(what_leaves(approval, own, memory, studies=studies, **facts)))

    def show(self) -> None:
        """Print it: on a terminal in lines that fit, otherwise one line for each sentence."""
        columns = get_terminal_size().columns if sys.stdout.isatty() else None
        sys.stdout.write(text_of(self.blocks, columns and min(columns, WIDTH)))

    def write(self, page: Path | None, decision: str) -> None:
        """Write it as a page to file and sign, with what is decided so far."""
        if page is not None:
            party = self.own.party
            signers = [f"for {party}", *(["second person"] if self.own.second else [])]
            title = f"{party}: decision about a study"
            write_text(page, html_of(title, [decision], self.blocks, signers))


def run_decline(
    study: Path, site: Path, because: str, by: str | None = None, page: Path | None = None
) -> None:
    """Record that a site's owner declines a study, and why; an earlier approval is withdrawn."""
    if len(because) > MOST_BECAUSE:
        raise ValueError(
            f"--because must have at most {MOST_BECAUSE} characters, got {len(because)}"
        )
    own, file = SiteFile.read(site), StudyFile.read(study)
    check_addressed(file, own)
    contract = contract_of(file, own.analysts[file.party])
    declined = Declined(contract, by or getuser(), today(), because)
    if page is not None:
        memory = SiteMemory.read(own.memory) if own.memory.exists() else SiteMemory()
        data = read_data(own)
        version = data.version(contract.variables)
        seen = Approval(contract, declined.by, declined.date, version=version)
        decision = f"Declined by {declined.by} on {declined.date}: {because}"
        Sheet.of(seen, own, memory, data=data).write(page, decision)
    path = write_declined(own.approved, declined)
    sys.stdout.write(f"Declined: {path}\nA run of the study is refused, and {file.party} reads: ")
    sys.stdout.write(f"declined by its owner: {because}\n")
