"""Write the page of a run: one HTML file without links to other files or to the network.

The text of the page stands in `templates`, which escape every text of the data. A content security
policy forbids all connections, and all scripts except those of this package, which it names by
their digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vertibayes import __version__
from vertibayes.drawing.edge_styles import DOUBTFUL, FEW_NATS
from vertibayes.report.counts import IN_WORDS
from vertibayes.report.html import assets, page_style
from vertibayes.report.ledger.analyst import ledger_of_run
from vertibayes.report.ledger.statement import Line, digest_in_words
from vertibayes.report.page import shown
from vertibayes.report.page.beside import Compared
from vertibayes.report.page.embedded import embedded_of
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.network import ShownNetwork
from vertibayes.report.page.results import Results
from vertibayes.report.page.tables import cpts_of, neighbours_of, tally, verdicts_of
from vertibayes.report.release.texts import TRACING_LIMITS, VERDICTS, rule_in_words
from vertibayes_protocols.release import Rule
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.storage.whole_file import create_own, replacing

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE = "vertibayes.report.page"
PAGE = "report.html"
BESIDE = "beside.html"  # a page of two runs
MOST_BYTES = 4_000_000  # of a page; larger sections are then left out
TITLES = {
    "learn": "Report of a Bayesian network",
    "nb": "Report of a naive Bayes classifier",
    "calibrate": "Report of a calibrated classifier",
}
SECTIONS = {
    "overview": "Overview",
    "network": "The network",
    "probabilities": "Probabilities",
    "validation": "How well it predicts",
    "beside": "Beside another run",  # if there is one
    "data": "The data as they were read",
    "released": "What was released, and to whom",
    "cost": "Cost",
    "methods": "Methods",
    "words": "Words",  # that the sections above link
    "files": "Files",  # and numbers that the sections above do not show
}
PREDICTION = {  # of commands that do not validate a network: the template, and the title
    "nb": ("tested", "How well it predicts, and what it promises"),
    "calibrate": ("calibration", "How well it predicts"),
}
BOUNDS = {
    "FEW_ROWS": 12,  # of a table that is open
    "MOST_ROWS": 1_000,  # of a table of arrows or links
    "MOST_VARIABLES": 2_000,
    "MOST_STATES": 60,  # of a variable in a table
    "MOST_CURVES": 20,  # states of a confusion table, and with curves in numbers
    "MOST_ROUNDS": 200,
    "MOST_NODES": 500,
    "MOST_LINES": 300,  # of the ledger
    "MOST_ITEMS": 5,  # tables of one line of the ledger that has more than FEW_ROWS
    "MANY": 5,  # tables with one verdict for one reason, which one sentence then lists
}
VALUES = re.compile(r"['\"].*['\"]|['\"].*|\d[\d.,]*")  # of a line: all that is quoted, and numbers


class Section(NamedTuple):
    """A section, whose content is HTML."""

    name: str  # by which links and scripts find it
    title: str
    content: str


def write_report(folder: Path, out: Path | None = None, beside: Path | None = None) -> Path:
    """Write the page of a folder of results, which only its owner can read, and return its path.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    out : Path, optional
        The file to write; `report.html` in the folder by default, `beside.html` beside another run.
    beside : Path, optional
        The folder of another run, with which the page compares the first.

    Raises
    ------
    ValueError
        If the folder has no results, or they cannot be read.
    OSError
        If the file cannot be written.
    """
    path = folder / (PAGE if beside is None else BESIDE) if out is None else out
    other = None if beside is None else Results.read(beside, "other/")
    text = render(Results.read(folder), other)
    with replacing(path) as part, create_own(part) as file:
        file.write(text.encode(errors="replace"))  # surrogates of a file changed by hand
    return path


def render(results: Results, beside: Results | None = None) -> str:
    """Return the page of a run, which another one may stand beside, as HTML."""
    network = ShownNetwork.of(results)
    sections = list(sections_of(results, network, beside))
    page = _page(results, sections, embedded_of(results, network))
    if _size(page) <= MOST_BYTES:
        return page
    return _page(results, list(map(_short, sections)), None)


def sections_of(
    results: Results, network: ShownNetwork, beside: Results | None = None
) -> Iterator[Section]:
    """Yield the sections; the last two know what the others have shown."""
    seen, summary = shown.Seen(), results.summary
    verdicts = verdicts_of(results)
    context = {
        "results": results,
        "files": results.files,
        "pictures": results.pictures,
        "summary": summary,
        "command": results.command,
        "sites": results.sites,
        "protected": results.is_protected,
        "noisy": results.is_noisy,
        "below": results.cut_below,
        "network": network,
        "beside": beside,
        "compared": None if beside is None else Compared.of(results, beside),
        "cpts": cpts_of(results),
        "ledger": lines_of(results.files["ledger.json"]),
        "verdict_counts": tally(summary["release"]["verdicts"]),
        "objected": [each for each in verdicts if each.verdict != "pass"],
        "passed": [each for each in verdicts if each.verdict == "pass"],
        "neighbours": neighbours_of(results.files["network.json"]["edges"].each()),
        "has_missing": any(each["missing"].value for _, each in summary["variables"].items()),
        "seen": seen,
        "unseen": lambda: [each for each in leaves(summary) if each.key not in seen.numbers],
    }
    for name, title in SECTIONS.items():
        if name == "beside" and beside is None:
            continue
        template = name
        if name == "validation" and results.command in PREDICTION:
            template, title = PREDICTION[results.command]
        content = _environment().get_template(f"{template}.html.j2").render(context)
        yield Section(name, title, shown.Html(content))


def lines_of(content: Entry) -> list[Line] | None:
    """Return the lines of a ledger; None if it is not valid, and nothing without a ledger."""
    if not content.exists:
        return []
    try:
        return ledger_of_run(content.value).lines
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


def leaves(entry: Entry) -> Iterator[Entry]:
    """Yield all numbers inside an entry."""
    if entry.is_number:
        yield entry
    for inside in (*(each for _, each in entry.items()), *entry.each()):
        yield from leaves(inside)


def without_values(text: str) -> str:
    """Return a text without numbers, which may count records, and without what it quotes.

    Examples
    --------
    >>> without_values("one value, 'it's rare', in all 80 records")
    'one value, [\u2026], in all [\u2026] records'
    """
    return VALUES.sub("[\u2026]", text)


def _page(results: Results, sections: Sequence[Section], model: Any) -> str:
    """Fill the template of the page; a page without a model has no scripts."""
    scripts = [] if model is None else assets(PACKAGE, ".js")
    return _environment().get_template("page.html.j2").render(
        title=TITLES.get(results.command, "Report of a run"),
        sections=sections,
        version=__version__,
        model=None if model is None else as_script(model),
        styles=[page_style(), *assets(PACKAGE, ".css")],
        scripts=scripts,
        digests=[_digest(script) for script in scripts],
    )  # fmt: skip


def _short(section: Section) -> Section:
    """Return a section of a page that is too large: without its content if this is large."""
    size = _size(section.content)
    if size <= MOST_BYTES // 10:
        return section
    note = (
        f'<p class="note">This section would take {size / 1e6:.1f} MB, and the page is limited to '
        f"{MOST_BYTES / 1e6:.0f} MB. The files of the folder have its content.</p>"
    )
    return section._replace(content=shown.Html(note))


def as_script(content: Any) -> str:
    """Return JSON data that cannot end the script element in which it is."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _rule_in_words(rule: Entry) -> str:
    """Return what a rule protects, and what it does not."""
    try:
        return rule_in_words(Rule(**rule.value))
    except (TypeError, ValueError, KeyError):
        return "The rule is not one that this release knows; summary.json has it."


def _kind_of(variable: Entry) -> str:
    if variable["bounds"].exists:
        return "number"
    return "number in bins" if bins_of(variable["states"].texts()) is not None else "states"


def _size(page: str) -> int:
    return len(page.encode(errors="replace"))


@cache
def _environment() -> Environment:
    """Return the templates; Jinja2 is imported by the first page only."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context

    environment = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "n": pass_context(shown.number),
        "noun": pass_context(shown.noun),
        "v": pass_context(shown.anything),
        "name": shown.name,
        "share": shown.FORMS["probability"],
        "listed": shown.listed,
        "at": Entry.__getitem__,
        "kind_of": _kind_of,
        "in_words": _rule_in_words,
        "digest": digest_in_words,
        "without_values": lambda text: without_values(text),
    }
    environment.globals |= BOUNDS | {
        "term": pass_context(shown.term),
        "table": pass_context(shown.table),
        "picture": pass_context(shown.picture),
        "link": shown.link,
        "row": shown.row,
        "cut": shown.cut,
        "DOUBTFUL": DOUBTFUL,
        "FEW_NATS": FEW_NATS,
        "IN_WORDS": IN_WORDS,
        "VERDICTS": VERDICTS,
        "TRACING_LIMITS": TRACING_LIMITS,
    }
    return environment
