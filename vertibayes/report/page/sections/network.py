"""The network: its drawing, its sites, and a table of its arrows."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.drawing.edge_styles import DOUBTFUL, FEW_NATS, style_of
from vertibayes.report.page.content import (
    Block,
    Drawing,
    Fold,
    Heading,
    Name,
    Paragraph,
    Piece,
    Section,
    Slot,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.glossary import term
from vertibayes.report.page.network_drawing import draw_network, marks_of
from vertibayes.report.page.numbers import count, decimals, listed, plain, share
from vertibayes.report.page.placement import PlacedNetwork, placed_network
from vertibayes.report.page.results import Results

MOST_ROWS = 1_000  # of a table of arrows
FEW_ROWS = 12  # of a table that is not folded
SCORES: list[tuple[str, Text]] = [
    ("log_likelihood", (term("likelihood"), " of the records")),
    ("bic", (term("bic"),)),
    ("aic", (term("aic"),)),
    ("k2", (term("k2"),)),
]


def network_section(results: Results) -> Section:
    """Return the section of the network."""
    placed = placed_network(results)
    return Section(
        "network",
        "The network",
        ("Each box is a variable. An ", term("arrow"), " says that the probabilities of the "
         "variable at its point depend on the variable at its start. It does not show that one "
         "causes the other.",),
        [
            Drawing("network-view", draw_network(placed, results.sites)),
            Slot("cpt-panel"),
            Slot("what-if"),
            Heading(("The arrows, one by one",)),
            *_strengths(results.summary),
            *_arrows(results, placed),
            *_others(results.files["structure.json"]),
            *_sites(results),
            *_scores(results.summary),
        ],
    )  # fmt: skip


def _sites(results: Results) -> Iterator[Block]:
    """Yield the sites with their letters, which the drawing shows."""
    marks = marks_of(results.sites)
    if not marks:
        return
    rows: list[list[Text]] = [
        [(letter,), (Name(site),), listed(n for n, of in results.sites.items() if of == site)]
        for site, (letter, _) in marks.items()
    ]
    caption = "Sites: each box has the letter and the colour of the site that holds the variable"
    yield Fold(("Which site holds which variable",),
               [Table(caption, ["letter", "site", "variables"], rows)])  # fmt: skip


def _scores(summary: Entry) -> Iterator[Block]:
    """Yield how well the network fits, in the numbers by which structures are compared."""
    scores = summary["scores"]
    if not scores.exists:
        return
    rows: list[list[Text]] = [[title, (decimals(scores[name], 1),)] for name, title in SCORES]
    rows.append([(term("parameter", "free parameters"),), (count(scores["free_parameters"]),)])
    caption = "Scores of the network in nats"
    yield Fold(("Scores of the network",), [
        Paragraph(("A score compares networks that were learned from the same records: the higher "
                   "score is better. The unit is ", term("nats"), ".")),
        Table(caption, ["score", "value"], rows),
    ])  # fmt: skip


def _strengths(summary: Entry) -> Iterator[Block]:
    """Say what strengths are from."""
    strengths = summary["strengths"]
    if not strengths.exists:
        return
    yield Paragraph((
        "The structure was learned again from ", count(strengths["samples"]), " samples (of ",
        count(strengths["planned"]), " planned), each of ", count(strengths["records"]),
        " records drawn from the learned network. The ", term("strength"), " of an arrow is the "
        "share of these structures that join its two variables, and its ", term("direction"),
        " is the share of these that point the same way. The structure that averages the samples "
        "has ", count(strengths["averaged_edges"]), " arrows.",
    ))  # fmt: skip


def _arrows(results: Results, placed: PlacedNetwork) -> Iterator[Block]:
    content = results.files["structure.json"]
    edges = list(content["edges"].each())
    if not edges:
        yield Paragraph(("The network has no arrows: no variable depends on another one.",))
        return
    heads = ["from", "to"]
    heads += ["direction shown by the data"] * (placed.compelled is not None)
    heads += ["strength", "direction"] * bool(placed.strengths)
    heads += ["gain (nats of BIC)"] * bool(placed.gains)
    rows = [_arrow(content, placed, at, edge) for at, edge in enumerate(edges[:MOST_ROWS])]
    table = Table("Arrows of the network", heads, rows)
    is_long = len(rows) > FEW_ROWS
    yield from _doubtful(placed)
    yield Fold((f"The {len(rows):,} arrows in a table",), [table]) if is_long else table
    if len(edges) > MOST_ROWS:
        yield Paragraph((f"The table has the first {MOST_ROWS:,} arrows; structure.json has all.",))
    if placed.compelled is not None:
        yield Paragraph((
            "Where the data do not show the direction, a network with the arrow turned round fits "
            "as well; such arrows have no point in the drawing.",
        ))  # fmt: skip


def _doubtful(placed: PlacedNetwork) -> Iterator[Block]:
    """Name the arrows that few samples have, or that gain little."""
    if not placed.gains and not placed.strengths:
        return
    edges = [
        edge for edge in placed.paths if style_of(edge, placed.strengths.get(edge), []).is_doubtful
    ]
    names: list[Piece] = []
    for parent, child in edges[:FEW_ROWS]:
        names += [", ", Name(parent), " to ", Name(child)]
    more = f", and {len(edges) - FEW_ROWS:,} more" if len(edges) > FEW_ROWS else ""
    which: Text = (f" {len(edges):,} of them are: ", *names[1:], more, ".") if edges else (
        " None of them is.",
    )  # fmt: skip
    yield Paragraph((
        "An arrow is doubtful, and dashed in the drawing, if its strength is below "
        f"{DOUBTFUL:.0%} or its ", term("gain"), f" below {FEW_NATS:g} ", term("nats"), ".", *which,
    ))  # fmt: skip


def _arrow(content: Entry, placed: PlacedNetwork, at: int, edge: Entry) -> list[Text]:
    """Return the row of an arrow."""
    ends = edge[0].text, edge[1].text
    row: list[Text] = [(Name(ends[0]),), (Name(ends[1]),)]
    if placed.compelled is not None:
        row.append(("yes" if ends in placed.compelled else "no",))
    if placed.strengths:
        row += [(share(content["strength"][at]),), (share(content["direction"][at]),)]
    if placed.gains:
        row.append((decimals(content["gain"][at], 1),))
    return row


def _others(content: Entry) -> Iterator[Block]:
    """Yield the pairs of variables that only samples join."""
    others = list(content["other_edges"].each())[:MOST_ROWS]
    if others:
        rows: list[list[Text]] = [
            [
                (Name(each["edge"][0].text),),
                (Name(each["edge"][1].text),),
                (share(each["strength"]),),
                (share(each["direction"]),),
            ]
            for each in others
        ]
        heads = ["from", "to", "strength", "direction"]
        averaged = content["averaged"]["threshold"]
        text = ("The averaged structure has the pairs whose strength is above ",
                plain(averaged), ".")  # fmt: skip
        table = Table("Pairs of variables that samples join, and the network does not", heads, rows)
        yield Fold(("Pairs that only samples join",), [Paragraph(text), table])
