"""``vertibayes ledger``: what was revealed, to whom, under which approval, and what was refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protocols.deployment.files import SiteFile
from protocols.errors import printable
from protocols.ledger import FORMAT, Fact, RevealedTable
from protocols.policy import Policy
from protocols.site.file_format import OLDEST, check_format
from protocols.site.ledger_entries import Tables, read_ledger
from protocols.site.memory import SiteMemory
from protocols.variables import Rows
from vertibayes.cli.outputs import write_text
from vertibayes.report.ledger.page import html_of, text_of
from vertibayes.report.ledger.statement import (
    Line,
    Part,
    Statement,
    budgets_of,
    digest_in_words,
    fact_in_words,
    merged,
    parts_of,
    tables_line,
)
from vertibayes.report.words import counted

SITE, ANALYST = "ledger.jsonl", "ledger.json"


def run_ledger(folder: Path, html: Path | None, everything: bool) -> None:
    """Print a ledger in words, or write it as a page; nothing in the folder is changed.

    Parameters
    ----------
    folder : Path
        A site's folder or its memory, or an analyst's folder of results.
    html : Path or None
        The page to write, in place of the text.
    everything : bool
        Whether the text lists all tables of each entry.

    Raises
    ------
    ValueError
        If the folder has no ledger, or the ledger is damaged or of a newer release.
    """
    statement = read_statement(folder)
    if html is None:
        lines = text_of(statement, everything=everything).split("\n")
        sys.stdout.write("\n".join(map(printable, lines)))
    else:
        write_text(html, html_of(statement))
        sys.stdout.write(f"{html}\n")


def read_statement(folder: Path) -> Statement:
    """Read the ledger of a folder."""
    for path in (folder, folder / SITE, folder / "memory" / SITE, folder / ANALYST):
        if path.is_file():
            return _of_site(path) if path.name.endswith(".jsonl") else _of_analyst(path)
    raise ValueError(
        f"{folder}: no ledger; specify a folder with {SITE} (a site's memory) or with {ANALYST} "
        "(an analyst's results)"
    )


# ---- a site --------------------------------------------------------------------------------------


def _of_site(path: Path) -> Statement:
    content, memory = read_ledger(path), path.with_name("memory")
    notes = [f"{counted(len(content.entries), 'line')}; times in UTC."]
    if content.cut:
        notes.append(
            f"The last {counted(content.cut, 'byte')} of the file are an entry that is being "
            "written, or that a crash cut short: what it notes has not been sent."
        )
    policy = _policy(path, notes)
    budgets = budgets_of(SiteMemory.read(memory), policy) if memory.exists() else []
    return Statement(f"Ledger {path}", notes, budgets, parts_of(content.entries))


def _policy(path: Path, notes: list[str]) -> Policy | None:
    """Return the policy of the site.toml beside the ledger, or above it."""
    for file in (path.with_name("site.toml"), path.parent.parent / "site.toml"):
        if file.exists():
            try:
                return SiteFile.read(file).policy
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
        facts = [Fact(e["what"], e["about"], tuple(e["to"])) for e in content["revealed"]]
        tables = tuple(map(_table, content["tables"]))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: not a valid ledger ({error})") from None
    lines = [tables_line("", Tables(tables))] if tables else []
    lines += [Line("", "revealed", fact_in_words(fact)) for fact in merged(facts)]
    title, subtitle = _study(path.with_name("summary.json"))
    return Statement(f"Ledger {path}", [], [], [Part(title, subtitle, lines)])


def _table(entry: Mapping[str, Any]) -> RevealedTable:
    rows = Rows(**entry.get("rows", {}))
    names, rule = tuple(entry["variables"]), entry.get("rule", "")
    return RevealedTable(names, int(entry["cells"]), entry["to"], rows, rule)


def _study(summary: Path) -> tuple[str, str]:
    """Return what identifies the study of a run, and when it was written."""
    try:
        content = json.loads(summary.read_bytes())
        study, written = content.get("study", {}), f"Written {content['written']}."
    except (OSError, ValueError, KeyError, AttributeError):
        return "A run without results", "It failed: the ledger has what was revealed before."
    digest = study.get("contract", study.get("id", ""))
    return (f"Study {digest_in_words(digest)}" if digest else "A run in one process"), written
