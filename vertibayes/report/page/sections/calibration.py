"""How well the nodes of a network classify, round by round, and how far they are from RC."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import (
    Block,
    Fold,
    Heading,
    Name,
    Note,
    Paragraph,
    Picture,
    Section,
    Table,
    Text,
)
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import count, fine_share, listed, noun, plain
from vertibayes.report.page.results import Results

MOST_ROUNDS = 200
MOST_NODES = 500


def calibration_section(results: Results) -> Section:
    """Return the section of a calibration."""
    lead: Text = (
        "This section says which share of records the nodes classify wrongly, by round. It does "
        "not show how well they classify records of other places or of later years.",
    )
    summary, trace = results.summary, results.files["calibration.json"]
    blocks: list[Block] = [*_errors(summary), *_picture(results), *_rounds(trace), *_nodes(trace),
                           *_links(results)]  # fmt: skip
    blocks.append(Note((
        "The models of the nodes have no noise, and promise nothing about single persons.",
    )))  # fmt: skip
    return Section("validation", "How well it predicts", lead, blocks)


def _errors(summary: Entry) -> Iterator[Block]:
    """Yield the errors after the last round, of the nodes and of RC on pooled records."""
    errors, nodes = summary["error"], summary["error"]["nodes"]
    scored = summary["scored_on"]
    if errors.exists:
        yield Paragraph((
            "After the last round the models of the nodes classify ", fine_share(nodes["mean"]),
            " of ", count(scored["records"]), f" {scored['what'].text} wrongly in the mean; the "
            "best node ", fine_share(nodes["least"]), ", and the worst node ",
            fine_share(nodes["largest"]), ".",
        ))  # fmt: skip
        yield Paragraph((
            "The same method on all records in one place (RC in the picture) classifies ",
            fine_share(errors["risk_based_calibration"]), " wrongly, and a model that is counted "
            "once and not calibrated (maximum likelihood) ",
            fine_share(errors["maximum_likelihood"]), ". The nodes are worse than RC by ",
            fine_share(summary["gap"]), " of the records.",
        ))  # fmt: skip
    if summary["own_error"].is_number:
        yield Paragraph((
            "After the last round the sites classify a share of ",
            fine_share(summary["own_error"]), " of their own records wrongly. These records were "
            "used to learn, so that this is optimistic.",
        ))  # fmt: skip
    test = summary["test"]
    if test.exists:
        yield Paragraph((
            "Of ", *noun(test["records"], "test record"), " of the analyst the model classifies a "
            "share of ", fine_share(test["error"]), " wrongly.",
        ))  # fmt: skip
    if summary["message"]["numbers"].is_number:
        yield Paragraph((
            "A message between two nodes has ", count(summary["message"]["numbers"]), " numbers.",
        ))  # fmt: skip


def _picture(results: Results) -> Iterator[Block]:
    picture = results.pictures.get("calibration.svg")
    if picture is not None:
        yield Paragraph((
            "Left: the share of records that the nodes classify wrongly, round by round, beside "
            "that of RC; the band is from the best node to the worst. Right: what the nodes "
            "minimize on their own records, a smooth form of their errors.",
        ))  # fmt: skip
        yield Picture(picture, "Two panels: the error of the nodes and the loss of training, round "
                      "by round. The table below has the numbers.")  # fmt: skip


def _rounds(trace: Entry) -> Iterator[Block]:
    """Yield a table of the rounds: the first and the last ones if there are many."""
    rounds = list(trace["rounds"].each())
    if not rounds:
        return
    kept = rounds if len(rounds) <= MOST_ROUNDS else [*rounds[: MOST_ROUNDS // 2],
                                                      *rounds[-MOST_ROUNDS // 2 :]]  # fmt: skip
    heads = [name.replace("_", " ") for name, _ in rounds[0].items()]
    rows: list[list[Text]] = [[_shown(entry) for _, entry in each.items()] for each in kept]
    left = len(rounds) - len(kept)
    caption = "Rounds; of errors: mean, least and largest of the nodes"
    if left:
        caption += f" ({left:,} rounds in the middle are in calibration.json)"
    yield Fold(("Errors by round",), [Table(caption, heads, rows)])


def _shown(entry: Entry) -> Text:
    """Return a value of a round; of several nodes, mean, least and largest."""
    if not isinstance(entry.value, dict):
        return (plain(entry) if entry.exists else "none",)
    mean, least, largest = (fine_share(entry[name]) for name in ("mean", "least", "largest"))
    return (mean, " (", least, " to ", largest, ")")


def _nodes(trace: Entry) -> Iterator[Block]:
    """Yield a table of the nodes."""
    nodes = list(trace["nodes"].items())[:MOST_NODES]
    rows: list[list[Text]] = [
        [
            (Name(name),),
            (count(each["records"]),),
            (fine_share(each["own_error"]) if each["own_error"].exists else "none",),
            (fine_share(each["error"]),),
        ]
        for name, each in nodes
    ]
    if rows:
        heads = ["node", "records", "error on its own records", "error on the scored records"]
        yield Fold(("Errors by node",), [Table("Nodes after the last round", heads, rows)])


def _links(results: Results) -> Iterator[Block]:
    """Yield the network of the nodes: who sends messages to whom."""
    network = results.files["network.json"]
    neighbours: dict[str, list[str]] = {}
    for link in network["edges"].each():
        one, other = link[0].text, link[1].text
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    if not neighbours:
        return
    yield Heading(("The network of the nodes",))
    picture = results.pictures.get("network.svg")
    if picture is not None:
        yield Paragraph(("A line joins two nodes that send messages to each other.",))
        yield Picture(picture, "The nodes and the links between them. The table below has the "
                      "neighbours of each node.")  # fmt: skip
    rows: list[list[Text]] = [
        [(Name(node),), listed(others)] for node, others in list(neighbours.items())[:MOST_NODES]
    ]
    yield Fold(("Neighbours of each node",),
               [Table("Neighbours of each node", ["node", "neighbours"], rows)])  # fmt: skip
