"""How the studies of naive Bayes under noise draw curves with error bars, and write cells."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from runs import figure_path


def mean_sd(values: np.ndarray | list[float]) -> str:
    """Return mean and standard deviation over repetitions."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def errors(axes, places, values, label, colour) -> None:
    """Draw mean and standard deviation; the last axis is of repetitions."""
    mean, sd = values.mean(axis=-1), values.std(axis=-1, ddof=1)
    axes.errorbar(places, mean, sd, label=label, color=colour, capsize=2, linewidth=1.2)
    axes.grid(color="0.9", linewidth=0.6)


def style(size: int = 8):
    """Return a context in which figures are the same at every run."""
    return mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dp", "font.size": size})


def legend(figure: Figure, axes, columns: int) -> None:
    """Show the curves of a panel below all panels, at most so many in a line."""
    handles, labels = axes.get_legend_handles_labels()
    columns = min(len(labels), columns)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def save(figure: Figure, name: str) -> None:
    """Write a figure: into the documentation, unless the run is reduced."""
    figure.savefig(figure_path(name), metadata={"Date": None})
