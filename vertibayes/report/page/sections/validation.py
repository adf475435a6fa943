"""How well the network predicts a variable: ROC curves, calibration and confusion in words."""

from __future__ import annotations

from collections.abc import Iterator

from vertibayes.report.page.content import (
    Block,
    Bullets,
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
from vertibayes.report.page.numbers import area, count, decimals, fine_share, noun, plain
from vertibayes.report.page.results import Results

METHODS = {
    "public": "on public records, which were not used to learn the network",
    "scv": "by synthetic cross-validation: records were drawn from the network and divided into "
    "folds. This is optimistic where a row of a table has few records",
    "svdg": "by validation on generated data: in each fold a network was learned from the records "
    "of the other folds, and tested on records that were drawn from the fold's own tables",
}
MOST_STATES = 20  # of a confusion table, and with curves in numbers
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
    yield Heading((Name(method["target"].text), f", {name.upper()}"))
    yield Paragraph((f"The prediction was tested {METHODS.get(name, 'by another method')}.",))
    yield _area(summary["auc"][name], summary["auc_interval"][name])
    yield _scored(method)
    yield _by_class(method)
    yield from _by_fold(method)
    picture = results.pictures.get(f"validation-{name}.svg")
    if picture is not None:
        yield Picture(picture, _alternative(method))
    yield from _confusion(method["confusion"])
    yield from _calibration(method["calibration"])
    yield from _roc(method["roc_band"])


def _area(auc: Entry, interval: Entry) -> Paragraph:
    """Say what the AUC is, and what it means."""
    if not auc.exists:
        return Paragraph(("There is no AUC: no fold had two states among the scored records.",))
    over: Text = ()
    if interval.exists:
        low, high = area(interval[0]), area(interval[1])
        over = (" The 95 % interval over the folds is from ", low, " to ", high, ".")
    return Paragraph((
        "The area under the ROC curve (AUC) is ", area(auc), ".", *over, " Take one record "
        "that has a state and one that does not: the AUC is the probability that the network gives "
        "the first a higher probability of that state. Guessing has 0.5, and perfect ranking 1. "
        "The AUC is the mean over the states, weighted by their records.",
    ))  # fmt: skip


def _scored(method: Entry) -> Paragraph:
    records = f"{method['test_records'].text} records"
    left_out, impossible = method["left_out"], method["impossible"]
    return Paragraph((
        count(method["scored"]), f" {records} were scored. ", count(left_out),
        " were left out, because their value of the variable is missing. ",
        count(impossible), " had values that the network holds impossible together, and were "
        "predicted by the other values. The AIC of the structure is ", decimals(method["aic"]),
        " nats.",
    ))  # fmt: skip


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
    yield Table("Confusion: each row has the records that truly have its state, by the state that "
                "was predicted", ["true state", *states], rows)  # fmt: skip
    yield Bullets([
        ("Of the records that truly have ", Name(state), ", the network predicted ", Name(state),
         " for ", count(counts[at][at]), ".")
        for at, state in enumerate(states)
    ])  # fmt: skip


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
            Paragraph(("A smaller epsilon (eps) protects more, and makes the model less exact.",)),
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
        "The classifier predicted ", Name(target), " for ", *noun(test["records"], "test record"),
        ". The share that it classified correctly is ", fine_share(test["accuracy"]),
        ". To predict the most frequent state for each record has ", fine_share(most), ".",
    )  # fmt: skip
    if test["predicted_by"].exists:
        text += (" The predictions were made by ", Name(test["predicted_by"].text), ".")
    blocks: list[Block] = [Paragraph(text)]
    if test["auc"].exists:
        blocks.append(Paragraph((
            "The AUC is ", area(test["auc"]), ". Take one record that has a state and one "
            "that does not: the AUC is the probability that the classifier gives the first a "
            "higher probability of that state. Guessing has 0.5, and perfect ranking 1.",
        )))  # fmt: skip
    quartiles = test["accuracy_of_all_parties"]
    if isinstance(quartiles.value, list) and len(quartiles.value) == 3:
        low, middle, high = (fine_share(each) for each in quartiles.each())
        blocks.append(Paragraph((
            "Each party has its own model. Half of the parties' models classify a share from ",
            low, " to ", high, " correctly; the median is ", middle, ".",
        )))  # fmt: skip
    if test["error"].is_number:
        blocks.append(Paragraph(("The share classified wrongly is ", fine_share(test["error"]),
                                 ".")))  # fmt: skip
    return blocks
