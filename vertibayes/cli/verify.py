"""``vertibayes verify`` and ``repair``: whether a site's ledger and memory are whole."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from vertibayes.words import counted
from vertibayes_mpc.randomness import label
from vertibayes_mpc.signing import SigningKey, is_signed
from vertibayes_protocols.deployment.files import SiteFile, own_keys
from vertibayes_protocols.storage.ledger_entries import LedgerContent
from vertibayes_protocols.storage.ledger_file import WAY_OUT, LedgerFile, compared
from vertibayes_protocols.storage.memory import SiteMemory

HEAD = "vertibayes-head"
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
        sys.stdout.write(_signed_head(own, ledger))
        return 0
    for pair in (*memory.together.unknown, *memory.together.lost):
        peer = next((name for name, key in own.pinned.items() if pair.endswith(key.hex())), pair)
        wrong.append(f"this site or {peer} has forgotten sessions: `vertibayes meets` says more")
    if heads is not None:
        wrong += _not_in(heads, own, ledger)
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
        "owner, too, has accepted that (`vertibayes meets --older-memory`)\n"
    )
    return 0


# ---- signed heads, for a log that only grows -----------------------------------------------------


def _signed_head(own: SiteFile, ledger: LedgerContent) -> str:
    lines, head = ledger.chain.lines, ledger.chain.head.hex()
    if not lines:
        raise ValueError(f"{own.ledger} has no chained line yet: it begins with the next session")
    signature = SigningKey.of(own_keys(own)).sign(label(HEAD, own.party, lines, head))
    return f"{HEAD} {own.party} {lines} {head} {signature.hex()}\n"


def _not_in(path: Path, own: SiteFile, ledger: LedgerContent) -> list[str]:
    """Return which lines of a log of heads the ledger contradicts."""
    wrong, public = [], SigningKey.of(own_keys(own)).public
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        place = f"{path}, line {number}"
        try:
            kind, party, lines, head, signature = line.split()
            known, signed = bytes.fromhex(head), bytes.fromhex(signature)
            count = int(lines)
        except ValueError:
            wrong.append(f"{place}: not a line of `vertibayes verify --head`")
            continue
        signed_text = label(kind, party, count, head)
        if party != own.party or not is_signed(signed_text, signed, public):
            wrong.append(f"{place}: not signed by the key of {own.party}")
        elif ledger.chain.line_of(known) != count:
            wrong.append(f"{place}: {own.ledger} no longer has this head at line {count:,}")
    return wrong
