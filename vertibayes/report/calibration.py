"""Draw the errors and the losses of a calibration, round by round, as an SVG picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertibayes.report.curves import svg_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
NODES, POOLED, LIKELIHOOD = "#1d6fa5", "#b03a2e", "#6b6b6b"


class Pooled(NamedTuple):
    """RC and maximum likelihood on pooled records."""

    soft: Floats  # the soft 0-1 loss per record of RC
    # The errors of RC and of maximum likelihood.
    error: float
    likelihood: float


class Traces(NamedTuple):
    """What is drawn."""

    errors: Floats  # the error of each node's model after each round
    scored: str  # on what: "2,000 test records"
    soft: Floats  # the soft 0-1 loss per record at the nodes
    pooled: Pooled | None = None  # what pooled records give, where there are pooled records


def draw_calibration(traces: Traces, title: str) -> str:
    """Return a picture of two panels: the errors of the nodes, and the loss that they lower."""
    with svg_picture(title, (10, 4.6), 2) as (_, (errors, loss), text):
        _draw_errors(errors, traces)
        _draw_loss(loss, traces)
    return text.getvalue()


def _draw_errors(axes: Axes, traces: Traces) -> None:
    rounds = np.arange(1, len(traces.errors) + 1)
    low, mean, high = (f(traces.errors, axis=1) for f in (np.min, np.mean, np.max))
    if traces.errors.shape[1] > 1:
        label = "nodes, least to largest"
        axes.fill_between(rounds, low, high, color=NODES, alpha=0.18, linewidth=0, label=label)
    axes.plot(rounds, mean, color=NODES, linewidth=1.6, label="nodes, mean")
    values = [float(low.min()), float(high.max())]
    if (pooled := traces.pooled) is not None:
        axes.axhline(pooled.error, color=POOLED, linestyle="--", linewidth=1.2, label="RC, pooled")
        label = "maximum likelihood, pooled"
        axes.axhline(pooled.likelihood, color=LIKELIHOOD, linestyle=":", linewidth=1.2, label=label)
        values += [pooled.error, pooled.likelihood]
    axes.set(title=f"Error on {traces.scored}", xlabel="round", ylabel="share classified wrongly")
    axes.set_ylim(bottom=_bottom(min(values), max(values)))
    _finish(axes)


def _bottom(least: float, largest: float) -> float:
    """Return where the axis of errors begins: at 0, unless the errors are far above it."""
    span = largest - least
    return least - 0.1 * span if 0 < span < 0.5 * least else 0.0


def _draw_loss(axes: Axes, traces: Traces) -> None:
    rounds = np.arange(1, len(traces.soft) + 1)
    axes.plot(rounds, traces.soft, color=NODES, linewidth=1.6, label="nodes, on their own records")
    axes.set(title="Soft 0-1 loss of training", xlabel="round", ylabel="loss per record")
    if traces.pooled is not None:
        soft = traces.pooled.soft
        axes.plot(soft, color=POOLED, linestyle="--", linewidth=1.2, label="RC, pooled")
        axes.set(xlabel="round, or iteration of RC")
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.locator_params(axis="x", integer=True)
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
