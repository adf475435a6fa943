"""The earlier studies over a site's variables, as its owner reads them before approving another.

What is approved here, what the ledger says has left, and how many runs the memory counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from vertibayes.report.ledger.record import name_of
from vertibayes.report.ledger.statement import SHORT, digest_in_words
from vertibayes.words import counted
from vertibayes_protocols.deployment.approvals import WITHDRAWN, approvals_in, read_approval
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.storage.ledger_entries import Entry, Tables, read_ledger
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.whole_file import NewerFormatError


@dataclass
class EarlierStudy:
    """A study with variables of this site, which is approved here or of which tables have left."""

    study: str  # the digest or the id, as the ledger has it
    when: str = ""
    rules: dict[str, None] = field(default_factory=dict)
    runs: str = ""  # that have released
    shared: dict[str, None] = field(default_factory=dict)
    tables: int = 0  # with variables of this site

    @property
    def title(self) -> str:
        """The first digits, as the ledger shows them."""
        return digest_in_words(self.study)[:SHORT]


def earlier_studies(
    own: SiteFile, memory: SiteMemory, names: Collection[str], but: bytes
) -> list[EarlierStudy]:
    """Return the other studies of some variables, those of which tables have left last at the end.

    A file of an approval that cannot be read is no study; `vertibayes approve --list` names it.
    """
    found: dict[str, EarlierStudy] = {}
    withdrawn = approvals_in(own.approved, WITHDRAWN)
    for path in [*withdrawn, *approvals_in(own.approved)]:
        try:
            approval = read_approval(path)
        except NewerFormatError:
            raise
        except ValueError:
            continue
        contract = approval.contract
        shared = [name for name in contract.variables if name in names]
        begun, used = memory.runs.count(contract.digest)
        if shared and (begun or path not in withdrawn):
            rules = {contract.rule.name: None} if contract.rule else {}
            when = f"approved {approval.date}"
            runs = f"{used} of {counted(contract.runs, 'run')} used"
            found[path.stem] = EarlierStudy(path.stem, when, rules, runs, dict.fromkeys(shared))
    if own.ledger.exists():
        _add_tables(found, read_ledger(own.ledger).entries, memory, names)
    return [study for study in found.values() if study.study != but.hex()]


def _add_tables(
    found: dict[str, EarlierStudy],
    entries: Iterable[Entry],
    memory: SiteMemory,
    names: Collection[str],
) -> None:
    """Add what a ledger says has left: of studies whose approval is gone, and of free queries."""
    for at, (_, study, approval), noted in entries:
        for table in noted.tables if isinstance(noted, Tables) else ():
            shared = [name for name in table.variables if name in names]
            if not shared:
                continue
            one = found.pop(study, None) or EarlierStudy(study)
            one.when = f"released {at[:10]}"
            one.rules[name_of(table.rule or "exact")] = None
            one.shared |= dict.fromkeys(shared)
            one.tables += 1
            one.runs = one.runs or (_runs(memory, study) if approval else "free queries")
            found[study] = one


def _runs(memory: SiteMemory, study: str) -> str:
    try:
        return counted(memory.runs.count(bytes.fromhex(study))[1], "run")
    except ValueError:  # of a ledger that was changed by hand
        return "unknown runs"
