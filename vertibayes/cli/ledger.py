"""``vertibayes ledger``: what was revealed, to whom, under which approval, and what was refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from vertibayes.cli.outputs import write_text
from vertibayes.report.ledger.analyst import ledger_of_run
from vertibayes.report.ledger.budgets import budgets_of
from vertibayes.report.ledger.overlaps import (
    overlaps_as_json,
    overlaps_in_words,
    pairs_of,
    releases_of,
)
from vertibayes.report.ledger.page import html_of
from vertibayes.report.ledger.record import AskedRecord, shown_of
from vertibayes.report.ledger.record_text import record_text
from vertibayes.report.ledger.statement import (
    Part,
    Statement,
    digest_in_words,
    in_utc,
    parts_of,
    this_study,
)
from vertibayes.report.ledger.text import text_of
from vertibayes.words import counted
from vertibayes_protocols.deployment.data import identifier_of, read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.errors import printable
from vertibayes_protocols.ledger import FORMAT
from vertibayes_protocols.storage.ledger_entries import read_ledger
from vertibayes_protocols.storage.ledger_file import compared
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.whole_file import OLDEST, check_format

SITE, ANALYST = "ledger.jsonl", "ledger.json"


def run_ledger(
    folder: Path, html: Path | None, everything: bool, verdicts: Path | None = None
) -> None:
    """Print a ledger in words, or write it as a page; nothing in the folder is changed.

    With `verdicts`, which tables of the site's releases can be compared is printed, and written.
    """
    if verdicts is not None:
        _write_verdicts(folder, verdicts)
        if html is None:
            return
    statement = read_statement(folder)
    if html is None:
        lines = text_of(statement, everything=everything).split("\n")
        sys.stdout.write("\n".join(map(printable, lines)))
    else:
        write_text(html, html_of(statement))
        sys.stdout.write(f"{html}\n")


def _write_verdicts(folder: Path, out: Path) -> None:
    path = _found(folder)
    if path.suffix != ".jsonl":
        raise ValueError(f"{path}: --verdicts compares the releases of a site, not of one run")
    releases = releases_of(read_ledger(path).entries)
    pairs = list(pairs_of(releases))
    write_text(out, json.dumps(overlaps_as_json(releases, pairs), ensure_ascii=False) + "\n")
    lines = overlaps_in_words(releases, pairs).split("\n")
    sys.stdout.write("\n".join(map(printable, lines)))


def read_statement(folder: Path) -> Statement:
    """Read the ledger of a folder."""
    path = _found(folder)
    return _of_site(path) if path.suffix == ".jsonl" else _of_analyst(path)


def run_record(folder: Path, identifier: Sequence[str], everything: bool) -> None:
    """Print what a site's released tables show of one of its people; nothing is written."""
    path = _found(folder)
    if path.suffix != ".jsonl":
        raise ValueError(f"{path}: --record asks a site, which has the records, not a run")
    site = next((file for file in _site_files(path) if file.exists()), None)
    if site is None:
        raise ValueError(f"{path}: no site.toml beside the ledger; --record reads the site's data")
    file = SiteFile.read(site)
    data = read_data(file)
    if not file.memory.exists():
        raise ValueError(f"{file.memory}: no memory of the site, which says what data answered")
    memory, entries = SiteMemory.read(file.memory), read_ledger(path).entries
    asked = AskedRecord(memory, data, memory.person_digest(identifier_of(file, data, identifier)))
    if not asked.is_known:
        raise ValueError(
            f"{file.data.title}: no record has this {' and '.join(file.data.id_column)}, and none "
            "had it when the site answered a study; write it as the file does"
        )
    shown = list(shown_of(entries, asked))
    lines = record_text(file.party, asked, shown, everything=everything).split("\n")
    sys.stdout.write("\n".join(map(printable, lines)))


def _found(folder: Path) -> Path:
    if folder.suffix == ".toml" and folder.is_file():
        folder = SiteFile.read(folder).folder
    for path in (folder, folder / SITE, folder / "memory" / SITE, folder / ANALYST):
        if path.is_file():
            return path
    raise ValueError(
        f"{folder}: no ledger; specify a folder with {SITE} (a site's memory) or with {ANALYST} "
        "(an analyst's results)"
    )


# ---- a site --------------------------------------------------------------------------------------


def _of_site(path: Path) -> Statement:
    content, known, wrong = compared(path, memory := path.with_name("memory"))
    notes = [f"File {path}: {len(content.entries):,} entries. Times are in UTC."]
    if memory.exists():
        notes += (f"Wrong: {text} (`vertibayes verify`)." for text in wrong)
    if content.cut:
        notes.append(
            f"The last {counted(content.cut, 'byte')} of the file are an entry that is being "
            "written, or that a crash cut short: what it notes has not been sent."
        )
    site = _site(path, notes)
    policy, party = (None, "") if site is None else (site.policy, site.party)
    limits = site.matching.limits if site is not None and site.matching is not None else None
    budgets = budgets_of(known, policy, limits) if memory.exists() else []
    title = f"Ledger of {party or path.parent}: what left, to whom, and what was refused"
    return Statement(title, notes, budgets, parts_of(content.entries, party))


def _site_files(path: Path) -> tuple[Path, Path]:
    return path.with_name("site.toml"), path.parent.parent / "site.toml"


def _site(path: Path, notes: list[str]) -> SiteFile | None:
    """Return the site.toml beside the ledger, or above it."""
    for file in _site_files(path):
        if file.exists():
            try:
                return SiteFile.read(file)
            except (ValueError, OSError) as error:
                notes.append(f"What is left is not known: {error}.")
                return None
    notes.append("What is left is not known: no site.toml is beside this folder.")
    return None


# ---- an analyst ----------------------------------------------------------------------------------


def _of_analyst(path: Path) -> Statement:
    try:
        content = json.loads(path.read_bytes())
        check_format(path, content.get("format", OLDEST), FORMAT)
        lines, total = ledger_of_run(content)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: not a valid ledger ({error})") from None
    digest, title, subtitle = _study(path.with_name("summary.json"))
    part = Part(title, subtitle, this_study(lines, digest), total=total)
    return Statement("Ledger of a run: what was revealed", [f"File {path}."], [], [part])


def _study(summary: Path) -> tuple[str, str, str]:
    """Return the study of a run, its title, and when it was written."""
    try:
        content = json.loads(summary.read_bytes())
        study, written = content.get("study", {}), in_utc(content["written"])
    except (OSError, ValueError, KeyError, AttributeError):
        return "", "A run without results", "It failed: the ledger has what was revealed before."
    digest = study.get("contract", study.get("id", ""))
    title = f"Study {digest_in_words(digest)}" if digest else "A run in one process"
    return digest, title, f"Written {written} UTC."
