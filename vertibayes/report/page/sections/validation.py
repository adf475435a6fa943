"""How well the network predicts a variable: ROC curves, calibration and confusion in words."""

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
from vertibayes.report.page.glossary import term
from vertibayes.report.page.numbers import area, count, decimals, fine_share, noun, plain
from vertibayes.report.page.results import Results

METHODS: dict[str, tuple[str, Text]] = {
    "public": ("public records", ("The records were not used to learn the network.",)),
    "scv": (
        "synthetic records",
        ("The records were drawn from the network and divided into ", term("fold", "folds"), " (",
         term("scv"), "). This is optimistic where a row of a table has few records."),
    ),
    "svdg": (
        "generated records",
        ("In each ", term("fold"), " a network was learned from the records of the other folds, "
         "and tested on records that were drawn from the fold's own tables (", term("svdg"), ")."),
    ),
}  # fmt: skip
MOST_STATES = 20  # of a confusion table, and with curves in numbers
IN_THE_PICTURE: Text = (
    "Left, the ", term("roc"), ": the nearer to the upper left corner, the better; the dashed line "
    "is guessing. Middle, the ", term("calibration"), ": points on the dashed line are "
    "probabilities that come true, and small points are of few records. Right, the ",
    term("confusion"), ": correct predictions are on the diagonal.",
)  # fmt: skip
STEPS = 10  # of the ROC curve in a table: every tenth of its points


def validation_section(results: Results) -> Section:
    """Return the section of the validations."""
    lead: Text = (
        "This section says how well the network predicts one variable from all others. It does "
        "not show how well it predicts records of other places or of later years.",
    )
    methods = list(results.files["validation.json"].items())
    blocks = [block for name, method in methods for block in _method(results, name, method)]
    if not blocks:
        blocks = [Paragraph((
            "The network was not validated. The option --validate of `vertibayes learn` does it.",
        ))]  # fmt: skip
    return Section("validation", "How well it predicts", lead, blocks)


def _method(results: Results, name: str, method: Entry) -> Iterator[Block]:
    """Yield what one validation says."""
    summary = results.summary
    records, how = METHODS.get(name, ("records", ("The method is not one of this release.",)))
    yield Heading(("Prediction of ", Name(method["target"].text), f" on {records}"))
    yield _area(summary["auc"][name], summary["auc_interval"][name])
    yield Paragraph((*how, *_scored(method)))
    picture = results.pictures.get(f"validation-{name}.svg")
    if picture is not None:
        yield Paragraph(IN_THE_PICTURE)
        yield Picture(picture, _alternative(method))
    yield from _confusion(method["confusion"])
    yield Fold(("AUC of each state against all others",), [_by_class(method)])
    yield from _by_fold(method)
    yield from _calibration(method["calibration"])
    yield from _roc(method["roc_band"])


def _area(auc: Entry, interval: Entry) -> Paragraph:
    """Say what the AUC is, and what it means."""
    if not auc.exists:
        return Paragraph(("There is no AUC: no fold had two states among the scored records.",))
    over: Text = ()
    if interval.exists:
        low, high = area(interval[0]), area(interval[1])
        over = (" (", term("interval"), " over the folds: ", low, " to ", high, ")")
    return Paragraph((
        "The ", term("auc"), " is ", area(auc), *over, ": of two records, one with a state and one "
        "without, this is how often the network gives the first a higher probability of the state. "
        "Guessing has 0.5, and perfect ranking 1. It is the mean over the states, weighted by "
        "their records.",
    ))  # fmt: skip


def _scored(method: Entry) -> Text:
    """Say how many records were scored, and how many were not or only in part."""
    left_out, impossible = method["left_out"], method["impossible"]
    text: Text = (" ", count(method["scored"]), f" {method['test_records'].text} records were "
                  "scored.")  # fmt: skip
    if left_out.value:
        text += (" ", count(left_out), " were left out, because their value of the variable is "
                 "missing.")  # fmt: skip
    if impossible.value:
        text += (" ", count(impossible), " had values that the network holds impossible together, "
                 "and were predicted by the other values.")  # fmt: skip
    return text


def _by_class(method: Entry) -> Table:
    rows: list[list[Text]] = [
        [(Name(state),), (area(each),)] for state, each in method["auc_by_class"].items()
    ]
    return Table("AUC of each state against all others", ["state", "AUC"], rows)


def _by_fold(method: Entry) -> Iterator[Block]:
    rows: list[list[Text]] = [
        [(str(at),), (area(each),)] for at, each in enumerate(method["auc_by_fold"].each(), start=1)
    ]
    if rows:
        yield Fold(("AUC of each fold",), [Table("AUC of each fold", ["fold", "AUC"], rows)])


def _alternative(method: Entry) -> str:
    """Return the text in place of the picture."""
    return (
        f"Three panels about the prediction of {method['target'].text}: ROC curves with the "
        "interval over the folds, calibration, and confusion. The tables below have the numbers."
    )


def _confusion(confusion: Entry) -> Iterator[Block]:
    """Yield what was predicted of the records of each state."""
    states, counts = confusion["states"].texts(), confusion["records_by_true_and_predicted"]
    if len(states) > MOST_STATES:
        yield Paragraph((f"The confusion table has {len(states)} states: see validation.json.",))
        return
    rows: list[list[Text]] = [
        [(Name(state),), *((count(each),) for each in counts[at].each())]
        for at, state in enumerate(states)
    ]
    if not rows:
        return
    yield Table("Confusion: each row has the records that truly have its state, by the state that "
                "was predicted", ["true state", *states], rows)  # fmt: skip
    yield Paragraph((
        "The first row says: of the records that truly have ", Name(states[0]), ", the network "
        "predicted ", Name(states[0]), " for ", count(counts[0][0]), ".",
    ))  # fmt: skip


def _calibration(calibration: Entry) -> Iterator[Block]:
    """Yield whether predicted probabilities come true."""
    tables: list[Block] = [Paragraph((
        "If probabilities are right, the share that was observed is near the predicted "
        "probability in each row.",
    ))]  # fmt: skip
    for state, curve in list(calibration.items())[:MOST_STATES]:
        rows: list[list[Text]] = [
            [
                (decimals(each),),
                (decimals(curve["observed"][at]),),
                (count(curve["records"][at]),),
            ]
            for at, each in enumerate(curve["predicted"].each())
        ]
        heads = ["predicted probability", "share observed", "records"]
        tables.append(Table(f"Calibration of {state}", heads, rows))
    if calibration.exists:
        yield Fold(("Calibration: do the predicted probabilities come true?",), tables)


def _roc(bands: Entry) -> Iterator[Block]:
    """Yield some points of the ROC curves, with their intervals."""
    tables = [
        Table(f"ROC curve of {state}: mean over the folds, with its interval",
              [name.replace("_", " ") for name, _ in band.items()], _points(band))
        for state, band in list(bands.items())[:MOST_STATES]
    ]  # fmt: skip
    if tables:
        yield Fold(("ROC curves in numbers",), [*tables])


def _points(band: Entry) -> list[list[Text]]:
    columns = [list(column.each()) for _, column in band.items()]
    points = list(zip(*columns, strict=False))
    return [[(decimals(each),) for each in point] for point in points[1::STEPS]]


def tested_section(results: Results) -> Section:
    """Return the section of the test of a classifier."""
    test, promise = results.summary["test"], results.summary["promise"]
    lead: Text = (
        "This section says how well the classifier predicts the test records, and what its noise "
        "protects. It does not show how well it predicts records of other places or of later "
        "years.",
    )
    blocks: list[Block] = []
    if test.exists:
        blocks += _accuracy(test, results.summary["target"].text)
    else:
        blocks.append(Paragraph(("The classifier was not tested: no test records were given.",)))
    blocks.append(Heading(("What the noise protects",)))
    if promise["sentence"].exists:
        entries: list[list[Text]] = [
            [(Name(name),), (plain(entry),)]
            for name, entry in [*promise.items(), *promise["cost"].items()]
            if entry.is_number
        ]
        blocks += [
            Paragraph((Name(promise["sentence"].text),)),
            Paragraph((
                "A model that is ", term("differential_privacy"), " would be about as likely "
                "without any one person. The first number is ", term("epsilon"), ": smaller "
                "protects more, and makes the model less exact. The second is ", term("delta"), ".",
            )),
            Fold(("The figures of the promise",),
                 [Table("Figures of the promise", ["figure", "value"], entries)]),
        ]  # fmt: skip
    else:
        blocks.append(Note(("The model has no noise, and promises nothing about single persons.",)))
    return Section("validation", "How well it predicts, and what it promises", lead, blocks)


def _accuracy(test: Entry, target: str) -> list[Block]:
    """Say how many test records were classified correctly, and how many by guessing."""
    most = test["accuracy_of_the_most_frequent_class"]
    text: Text = (
        "The classifier predicted ", Name(target), " correctly for ", fine_share(test["accuracy"]),
        " of ", *noun(test["records"], "test record"), ". To predict the most frequent state for "
        "each record would be correct for ", fine_share(most), ".",
    )  # fmt: skip
    if test["predicted_by"].exists:
        text += (" The predictions were made by ", Name(test["predicted_by"].text), ".")
    blocks: list[Block] = [Paragraph(text)]
    if test["auc"].exists:
        blocks.append(Paragraph((
            "The ", term("auc"), " is ", area(test["auc"]), ": of two records, one with a state "
            "and one without, this is how often the classifier gives the first a higher "
            "probability of the state. Guessing has 0.5, and perfect ranking 1.",
        )))  # fmt: skip
    quartiles = test["accuracy_of_all_parties"]
    if isinstance(quartiles.value, list) and len(quartiles.value) == 3:
        low, middle, high = (fine_share(each) for each in quartiles.each())
        blocks.append(Paragraph((
            "Each party has its own model. Half of the parties' models classify a share from ",
            low, " to ", high, " correctly; the median is ", middle, ".",
        )))  # fmt: skip
    if test["error"].is_number:
        blocks.append(Paragraph(("It is wrong for ", fine_share(test["error"]), ".")))  # fmt: skip
    return blocks
