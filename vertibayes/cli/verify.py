"""``vertibayes verify`` and ``repair``: whether a site's ledger and memory are whole."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from vertibayes.words import counted
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.signed_heads import not_in, signed_head
from vertibayes_protocols.storage.ledger_file import WAY_OUT, LedgerFile, compared
from vertibayes_protocols.storage.memory import SiteMemory

WHAT_FOLLOWS = (
    "What may follow: a site that has forgotten studies compares no data with them. If one value "
    "of one person has changed since, the tables of the next study differ from the earlier ones by "
    "this person, and whoever has both reads values of this person, also those of other sites. The "
    "limits count what is left from what is remembered: lower them in [policy] by what the ledgers "
    "of the others show.\n"
)


def run_verify(site: Path, *, head: bool, heads: Path | None) -> int:
    """Print what is wrong with a site's ledger and memory; return the exit status."""
    own = SiteFile.read(site)
    ledger, memory, wrong = compared(own.ledger, own.memory)
    if head:
        sys.stdout.write(signed_head(own, ledger))
        return 0
    for peer in memory.together.refused(own.pinned):
        wrong.append(f"this site or {peer} has forgotten sessions: `vertibayes meets` says more")
    if heads is not None:
        wrong += not_in(heads, own, ledger)
    for text in wrong:
        sys.stdout.write(f"wrong    {text}\n")
    lines, writes = counted(ledger.chain.lines, "chained line"), counted(memory.writes, "write")
    sys.stdout.write(f"{'what to do: ' + WAY_OUT if wrong else f'ok       {lines}, {writes}'}\n")
    return int(bool(wrong))


def run_repair(site: Path, because: str) -> int:
    """Use what is left of a ledger and a memory, and note it; nothing that is lost comes back."""
    own = SiteFile.read(site)
    with closing(SiteMemory(own.memory)) as memory:
        *_, wrong = compared(own.ledger, own.memory)
        if not wrong:
            sys.stdout.write("Nothing to repair: the ledger and the memory are of one time\n")
            return 0
        sys.stdout.write("".join(f"wrong    {text}\n" for text in wrong) + WHAT_FOLLOWS)
        if not because:
            sys.stdout.write(
                "Nothing was changed. Restore the newest backup of both files; if it is lost, "
                "--because REASON uses what is left.\n"
            )
            return 1
        with closing(LedgerFile(own.ledger, memory, new_chain=True)) as ledger:
            for text in wrong:
                what = f"its owner uses what is left, because {because}: {text}"
                ledger.note(what, own.party, ())
            memory.save(always=True)
    sys.stdout.write(
        "Noted: the ledger begins another chain. Each site that met this one refuses it until its "
        f"owner, too, has accepted that (`vertibayes meets --older-memory {own.party}`)\n"
    )
    return 0
