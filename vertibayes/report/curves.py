"""ROC curves, calibration and confusion of a validation as one SVG picture, by matplotlib."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from vertibayes.validation.curves import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED = 12  # classes that a legend or the sides of a matrix have room for


def draw_curves(found: Curves, title: str) -> str:
    """Return a picture of three panels.

    Parameters
    ----------
    found : Curves
    title : str

    Returns
    -------
    svg : str
        The text of an SVG file: the same for the same curves.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 9}):
        figure = Figure(figsize=(12, 4.2), layout="constrained")
        roc, calibration, confusion = figure.subplots(1, 3)
        figure.suptitle(title, parse_math=False)
        _draw_roc(roc, found)
        _draw_calibration(calibration, found)
        _draw_confusion(confusion, found)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _draw_roc(axes: Axes, found: Curves) -> None:
    axes.set(title="ROC, one class against the rest", xlabel="false positive rate")
    axes.set(ylabel="true positive rate", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect=1)
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
    for place, state in enumerate(found.calibration):
        if state in found.roc:
            axes.plot(*found.roc[state], label=_plain(state), linewidth=1.4, color=f"C{place}")
    if 0 < len(found.roc) <= MOST_NAMED:
        axes.legend(loc="lower right", fontsize=8)


def _draw_calibration(axes: Axes, found: Curves) -> None:
    axes.set(title="Calibration", xlabel="predicted probability", ylabel="share observed")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect=1)
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
    for place, (state, (predicted, observed, records)) in enumerate(found.calibration.items()):
        colour, sizes = f"C{place}", 8 + 60 * records / max(records.sum(), 1)
        axes.plot(predicted, observed, linewidth=1, label=_plain(state), color=colour)
        axes.scatter(predicted, observed, s=sizes, color=colour, clip_on=False)
    if len(found.calibration) <= MOST_NAMED:
        axes.legend(loc="upper left", fontsize=8)


def _draw_confusion(axes: Axes, found: Curves) -> None:
    states, counts = list(found.calibration), found.confusion
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(counts / totals, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set(title="Confusion, records", xlabel="predicted", ylabel="true")
    if len(states) > MOST_NAMED:
        return
    names = [_plain(state) for state in states]
    axes.set_xticks(range(len(states)), names)
    if len(states) * max(map(len, names), default=0) > 40:
        axes.tick_params(axis="x", rotation=30)
    axes.set_yticks(range(len(states)), names)
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if count > totals[row, 0] / 2 else "black"
        axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize=8)


def _plain(state: str) -> str:
    """Return a name that matplotlib shows as it is: no formula, never left out of a legend."""
    shown = state if len(state) <= 24 else state[:23] + "…"
    return ("\u200b" + shown if shown.startswith("_") else shown).replace("$", r"\$")
