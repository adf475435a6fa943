"""The tables of a naive Bayes model with numbers, which naive_bayes.json has."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import Block, Columns, Fold, Name, Paragraph, Table, Text
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.numbers import brief, probability


def class_tables(model: Entry) -> Iterator[Block]:
    """Yield a table of the classes, and one for each feature."""
    target = model["target"]
    states = target["states"].texts()
    yield Paragraph((
        "Each variable has its own table for each state of ", Name(target["name"].text),
        ". A variable that stayed a number has a mean and a variance instead: it is taken as "
        "normally distributed within each state.",
    ))  # fmt: skip
    rows: list[list[Text]] = [
        [
            (Name(state),),
            (probability(target["probabilities"][at]),),
            (brief(target["counts"][at]),),
        ]
        for at, state in enumerate(states)
    ]
    yield Table("Classes", ["state", "probability", "count"], rows)
    folds: list[list[Block]] = [
        [Fold((Name(feature["name"].text),), [_table(feature, states)])]
        for feature in model["features"].each()
    ]
    yield Columns(folds, narrow=True)


def _table(feature: Entry, classes: list[str]) -> Table:
    """Return the table of a feature: its probabilities, or mean and variance, in each class."""
    name = feature["name"].text
    if not feature["states"].exists:
        bounds = feature["bounds"].value
        between = f", between {bounds[0]:g} and {bounds[1]:g}" if _is_pair(bounds) else ""
        rows: list[list[Text]] = [
            [(Name(state),), (brief(feature["mean"][at]),), (brief(feature["variance"][at]),)]
            for at, state in enumerate(classes)
        ]
        return Table(f"{name}{between}", ["class", "mean", "variance"], rows)
    rows = [
        [(Name(state),), *((probability(each),) for each in feature["probabilities"][at].each())]
        for at, state in enumerate(classes)
    ]
    return Table(f"Probabilities of {name}", ["class", *feature["states"].texts()], rows)


def _is_pair(bounds: object) -> bool:
    return isinstance(bounds, list) and len(bounds) == 2 and all(
        isinstance(bound, int | float) for bound in bounds
    )  # fmt: skip
