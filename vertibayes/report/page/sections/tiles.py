"""The key figures of a run, which the overview shows first."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import Name, Text, Tile
from vertibayes.report.page.entries import Entry
from vertibayes.report.page.glossary import term
from vertibayes.report.page.numbers import area, count, fine_share, length, plain
from vertibayes.report.page.results import Results
from vertibayes.report.page.rules import is_protected

VALIDATIONS = "public", "svdg", "scv"  # the first one that was made is shown
TESTS = {
    "public": "on public records",
    "svdg": "on generated records",
    "scv": "on synthetic records, optimistic",
}


def tiles_of(results: Results) -> Iterator[Tile]:
    """Yield the key figures of a run: sizes, how well it predicts, and what protects persons."""
    summary = results.summary
    yield Tile(("records",), (count(summary["records"]),))
    yield Tile(("variables",), (length(summary["variables"]),))
    yield from _who(results.command, summary)
    yield from {"nb": _tested, "calibrate": _calibrated}.get(results.command, _validated)(summary)
    yield _protection(summary)


def parties_of(summary: Entry) -> Text:
    """Return the number of parties with its noun."""
    parties = summary["parties"]
    return (count(parties), " party" if parties.value == 1 else " parties")


def _who(command: str, summary: Entry) -> Iterator[Tile]:
    if command == "nb":
        yield Tile(("parties",), (count(summary["parties"]),))
    elif command == "calibrate":
        yield Tile(("nodes",), (count(summary["nodes"]),))
    else:
        yield Tile((term("site", "sites"),), (length(summary["sites"]),))
        yield Tile((term("arrow", "arrows"),), (count(summary["edges"]),))


def _validated(summary: Entry) -> Iterator[Tile]:
    """Yield how well a network predicts, by the least optimistic validation."""
    for name in VALIDATIONS:
        auc, interval = summary["auc"][name], summary["auc_interval"][name]
        if not auc.is_number:
            continue
        note: Text = (TESTS[name],)
        if interval.exists:
            note = ("95 %: ", area(interval[0]), " to ", area(interval[1]), "; ", TESTS[name])
        target = summary["options"]["target"]
        of: Text = (" for ", Name(target.text)) if target.exists else ()
        yield Tile((term("auc"), *of), (area(auc),), note)
        return


def _tested(summary: Entry) -> Iterator[Tile]:
    """Yield how well a classifier predicts the test records."""
    test = summary["test"]
    if not test["accuracy"].is_number:
        return
    most = test["accuracy_of_the_most_frequent_class"]
    yield Tile(
        (Name(summary["target"].text), " predicted correctly"),
        (fine_share(test["accuracy"]),),
        ("the most frequent state alone: ", fine_share(most)),
    )


def _calibrated(summary: Entry) -> Iterator[Tile]:
    """Yield how many records the nodes classify wrongly."""
    errors = summary["error"]
    if errors["nodes"].exists:
        yield Tile(
            (Name(summary["target"].text), " predicted wrongly"),
            (fine_share(errors["nodes"]["mean"]),),
            ("all records in one place: ", fine_share(errors["risk_based_calibration"])),
        )


def _protection(summary: Entry) -> Tile:
    """Return what protects single persons."""
    rule, promise = summary["release"]["rule"], summary["promise"]
    label: Text = ("protection of persons",)
    if not is_protected(summary):
        return Tile(label, ("none",), ("exact numbers",))
    if rule["fewest"].is_number:
        return Tile(label, ("cut",), ("counts below ", count(rule["fewest"]), " become 0"))
    if rule["epsilon"].is_number:
        return Tile(label, ("noise",), (term("epsilon"), " ", plain(rule["epsilon"])))
    if promise["eps"].is_number:
        return Tile(label, ("noise",), (term("epsilon"), " ", plain(promise["eps"])))
    return Tile(label, ("noise",))
