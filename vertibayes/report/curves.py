"""Draw the ROC curves, calibration and confusion of a validation as an SVG picture."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vertibayes.validation.methods import Validation

MOST_NAMED = 12  # classes for which a legend or the sides of a matrix have room
LONGEST = 24  # characters of a name


@contextmanager
def svg_picture(
    title: str, size: tuple[float, float], panels: int
) -> Iterator[tuple[Figure, NDArray[Any], StringIO]]:
    """Yield a figure, its panels, and the file that has the picture as SVG after the block."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    text = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, panels)
        figure.suptitle(title, parse_math=False)
        yield figure, axes, text
        with warnings.catch_warnings():  # characters that only the measuring font does not have
            warnings.simplefilter("ignore", UserWarning)
            figure.savefig(text, format="svg", metadata={"Date": None})


def draw_curves(validation: Validation, title: str) -> str:
    """Return a picture of three panels.

    Of two classes, only the ROC curve and calibration of the last are drawn: those of the other are
    their mirror images.
    """
    states = validation.curves.calibration
    names = {state: _plain(state, place) for place, state in enumerate(states)}
    labels = {state: _label(validation, state, name) for state, name in names.items()}
    shown = list(labels)[-1:] if len(labels) == 2 else list(labels)
    with svg_picture(title, (12, 4.8), 3) as (figure, (roc, calibration, confusion), text):
        _draw_roc(roc, validation, shown)
        _draw_calibration(calibration, validation, {state: labels[state] for state in shown})
        _draw_confusion(confusion, validation, names)
        if len(names) <= MOST_NAMED:
            legend = calibration.get_legend_handles_labels()
            figure.legend(*legend, loc="outside lower left", ncols=6, fontsize=8)
    return text.getvalue()


def _label(validation: Validation, state: str, name: str) -> str:
    area = validation.overall.by_class.get(state)
    shown = f"{_literal(_printable(validation.target))} = {name}"
    return shown if area is None else f"{shown}: AUC {area:.3f}"


def _draw_roc(axes: Axes, validation: Validation, shown: Sequence[str]) -> None:
    title = "ROC" if len(shown) == 1 else "ROC, one class against the rest"
    if validation.bands:
        title += "\nmean of the folds, and its 95 % interval"
    axes.set(title=title, xlabel="false positive rate")
    axes.set(ylabel="true positive rate", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect=1)
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
    for place, state in enumerate(shown):
        if state in validation.bands:
            rate, mean, low, high = validation.bands[state]
            axes.fill_between(rate, low, high, color=_colour(place), alpha=0.2, linewidth=0)
            axes.plot(rate, mean, linewidth=1.4, color=_colour(place))
        elif state in validation.curves.roc:
            axes.plot(*validation.curves.roc[state], linewidth=1.4, color=_colour(place))


def _draw_calibration(axes: Axes, validation: Validation, labels: Mapping[str, str]) -> None:
    axes.set(title=f"Calibration, point sizes by {_records(validation)}")
    axes.set(xlabel="predicted probability")
    axes.set(ylabel="share observed", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect=1)
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
    for place, (state, label) in enumerate(labels.items()):
        predicted, observed, records, low, high = validation.curves.calibration[state]
        colour, sizes = _colour(place), 2 + 150 * records / max(int(records.sum()), 1)
        axes.plot(predicted, observed, linewidth=1, label=label, color=colour)
        axes.scatter(predicted, observed, s=sizes, color=colour, clip_on=False)
        if not validation.synthetic and len(labels) == 1:  # those of more states would overlap
            axes.vlines(predicted, low, high, color=colour, linewidth=1)


def _records(validation: Validation) -> str:
    return "synthetic records" if validation.synthetic else "records"


def _draw_confusion(axes: Axes, validation: Validation, names: Mapping[str, str]) -> None:
    counts = validation.curves.confusion
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(counts / totals, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set(title=f"Confusion, {_records(validation)}", xlabel="predicted", ylabel="true")
    if len(names) > MOST_NAMED:
        axes.set(xlabel=f"predicted, {len(names)} states by their places", ylabel="true, places")
        return
    shown = list(names.values())
    slanted = len(shown) * max(map(len, shown), default=0) > 40
    slant = 30 if slanted else 0
    axes.set_xticks(range(len(shown)), shown, rotation=slant, ha="right" if slanted else "center")
    axes.set_yticks(range(len(shown)), shown)
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if count > totals[row, 0] / 2 else "black"
        axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize=8)


def _colour(place: int) -> tuple[float, float, float, float]:
    """Return one of twenty colours; the strong colours come first."""
    from matplotlib import colormaps

    rgba: tuple[float, float, float, float] = colormaps["tab20"]((place * 2 + place // 10) % 20)
    return rgba


def _plain(state: str, place: int) -> str:
    """Return a name that matplotlib and XML show unchanged; a long name loses its middle."""
    shown = _printable(state)
    if len(shown) > LONGEST:
        shown = f"{place + 1}: {shown[: LONGEST // 2]}…{shown[-LONGEST // 3 :]}"
    return _literal("\u200b" + shown if shown.startswith("_") else shown)


def _printable(name: str) -> str:
    """Return a name without the characters that XML forbids."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)


def _literal(text: str) -> str:
    """Return a text that matplotlib does not interpret as a formula."""
    return text.replace("$", r"\$")
