"""The tables of the page that need more than a loop: probabilities with counts, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from vertibayes.report.page.entries import Entry
from vertibayes.report.page.results import Results

MOST_CELLS = 500  # of one table of probabilities
MOST_ON_PAGE = 4_000  # cells of all tables
ORDER = ("fail", "review", "pass")  # what needs a decision comes first
SHOWN = ("cells", "smallest count above 0", "small cells", "small differences")
NOT_SAID = "dominance"  # a check that applies to no count, as the text below the tables says


class Cpt(NamedTuple):
    """The probabilities of a variable."""

    name: str
    states: list[str]
    parents: list[str]
    cells: int
    # The parents' states, probabilities and counts; None if the page has no room.
    rows: list[tuple[tuple[str, ...], Entry, Entry]] | None


def cpts_of(results: Results) -> Iterator[Cpt]:
    """Yield the table of each variable, with rows as far as the page has room."""
    nodes, left = list(results.files["model.json"]["nodes"].each()), MOST_ON_PAGE
    states = {node["name"].text: node["states"].texts() for node in nodes}
    for node in nodes:
        name, parents, shares = node["name"].text, node["parents"].texts(), node["probabilities"]
        own = results.files["counts.json"]["families"][name]["counts"]
        cells, rows = sum(len(list(row.each())) for row in shares.each()), None
        if cells <= min(left, MOST_CELLS):
            left -= cells
            combinations = product(*(states.get(parent, [""]) for parent in parents))
            places = range(len(list(shares.each())))  # a file by another person may have too few
            pairs = zip(places, combinations, strict=False)
            rows = [(given, shares[at], own[at]) for at, given in pairs]
        yield Cpt(name, states[name], parents, cells, rows)


class Verdict(NamedTuple):
    """A row of release/tables.csv."""

    child: str
    parents: str
    verdict: str
    reasons: str  # one on each line
    cells: list[str]

    @property
    def why(self) -> tuple[str, str]:
        """The verdict with its reasons."""
        return self.verdict, self.reasons


def verdicts_of(results: Results) -> list[Verdict]:
    """Return the verdicts on released tables, those first about which a person must decide."""
    verdicts = [
        Verdict(
            row.get("child", ""),
            row.get("parents", ""),
            row.get("verdict", ""),
            "\n".join(r for r in row.get("reasons", "").split("; ") if not r.startswith(NOT_SAID)),
            [row.get(name) or "none" for name in SHOWN],
        )
        for row in results.release
    ]
    return sorted(verdicts, key=lambda each: _rank(each.verdict))


def tally(verdicts: Entry) -> list[tuple[str, Entry]]:
    """Return how many tables have each verdict, in the same order."""
    return sorted(verdicts.items(), key=lambda each: _rank(each[0]))


def _rank(verdict: str) -> int:
    return ORDER.index(verdict) if verdict in ORDER else 0


def neighbours_of(edges: Iterable[Entry]) -> dict[str, list[str]]:
    """Return the neighbours of each node of the network of a calibration."""
    neighbours: dict[str, list[str]] = {}
    for edge in edges:
        for one, other in ((0, 1), (1, 0)):
            neighbours.setdefault(edge[one].text, []).append(edge[other].text)
    return neighbours
