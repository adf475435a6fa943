"""Heads of a site's ledger, signed with the site's key: lines for a log that only grows."""

from __future__ import annotations

from pathlib import Path

from vertibayes_mpc.randomness import label
from vertibayes_mpc.signing import SigningKey, is_signed
from vertibayes_protocols.deployment.files import SiteFile, own_keys
from vertibayes_protocols.public_keys import decode_signing
from vertibayes_protocols.storage.ledger_entries import LedgerContent

HEAD = "vertibayes-head"


def signed_head(own: SiteFile, ledger: LedgerContent) -> str:
    """Return the line of the last head of a ledger."""
    lines, head = ledger.chain.lines, ledger.chain.head.hex()
    if not lines:
        raise ValueError(f"{own.ledger} has no chained line yet: it begins with the next session")
    signature = SigningKey.of(own_keys(own)).sign(label(HEAD, own.party, lines, head))
    return f"{HEAD} {own.party} {lines} {head} {signature.hex()}\n"


def not_in(path: Path, own: SiteFile, ledger: LedgerContent) -> list[str]:
    """Return which lines of a log of heads the ledger contradicts.

    A retired key of the site may have signed a line: the ledger must have its head all the same.
    """
    wrong, public = [], [SigningKey.of(own_keys(own)).public]
    if own.roster is not None:
        public += [decode_signing(old.public) for old in own.roster.retired_keys(own.party)]
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
        if party != own.party or not any(is_signed(signed_text, signed, key) for key in public):
            wrong.append(f"{place}: not signed by the key of {own.party}")
        elif ledger.chain.line_of(known) != count:
            wrong.append(f"{place}: {own.ledger} no longer has this head at line {count:,}")
    return wrong
