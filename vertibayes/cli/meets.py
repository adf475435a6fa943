"""``vertibayes meets``: comparisons of a site's list of people that failed; forgive them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from vertibayes.cli.verify import WHAT_FOLLOWS
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.storage.meet_counts import ALIGNMENTS, forgive, read_forgiven
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.runs_together import accept


def run_meets(
    site: Path, reset: str | None, *, alignments: bool = False, older: Sequence[str] = ()
) -> None:
    """Print the comparisons with each site that may be guesses, or forgive those with one."""
    own = SiteFile.read(site)
    peers = sorted(set(own.pinned) - {own.dealer, *own.analysts})
    if reset is not None:
        if reset not in peers:
            there = ", ".join(peers) or "no site"
            raise ValueError(f"--reset must be a site that {site} pins ({there}), got {reset!r}")
        own.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        forgive(forgiven_of(own), reset)
        sys.stdout.write(f"Forgiven: all comparisons with {reset} so far, from its next one on\n")
        return
    if alignments:
        own.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        forgive(forgiven_of(own), ALIGNMENTS)
        sys.stdout.write("Allowed: the alignments so far do not count, from the next one on\n")
        return
    memory = SiteMemory.read(own.memory) if own.memory.exists() else SiteMemory()
    counts, refused = memory.meets, memory.together.refused(own.pinned)
    if older:
        if strange := [name for name in older if name not in refused]:
            there = ", ".join(refused) or "no site"
            raise ValueError(
                f"--older-memory must be a site with which something was forgotten ({there}), got "
                f"{strange[0]!r}"
            )
        accept(accepted_of(own), [alarm.head for name in older for alarm in refused[name]])
        words = "".join(f"{name}: {a.words}\n" for name in older for a in refused[name])
        sys.stdout.write(
            f"{words}{WHAT_FOLLOWS}Accepted, from the next session on. The owner of each other "
            "site that met it must accept it too\n"
        )
        return
    waiting = read_forgiven(forgiven_of(own))
    for peer in peers:
        different, unanswered = counts.of(peer)
        left = max(own.policy.most_failed_meets - different - unanswered, 0)
        note = "; forgiven from the next one on" if counts.will_forgive(peer, waiting) else ""
        sys.stdout.write(
            f"{peer}: {different} found different lists, {unanswered} were not answered, {left} "
            f"more may fail{note}\n"
        )
    for peer, alarms in refused.items():
        words = "; ".join(alarm.words for alarm in alarms)
        sys.stdout.write(f"{own.party} refuses {peer}: {words} (`--older-memory {peer}`)\n")
    if own.matching is not None:
        begun, most = counts.of(ALIGNMENTS).total, own.matching.limits.most_alignments
        note = "; the next one is not refused" if counts.will_forgive(ALIGNMENTS, waiting) else ""
        sys.stdout.write(f"alignments: {begun} began, {max(most - begun, 0)} more may{note}\n")


def accepted_of(own: SiteFile) -> Path:
    """Return the file by which a site's owner accepts an older memory."""
    return own.memory.with_name(own.memory.name + ".accepted")


def forgiven_of(own: SiteFile) -> Path:
    """Return the file of a site's forgiven comparisons."""
    return own.memory.with_name(own.memory.name + ".forgiven")
