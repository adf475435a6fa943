"""The network: its drawing, and a table of its edges."""

from __future__ import annotations

from vertibayes.report.page.content import Drawing, Section, Slot
from vertibayes.report.page.network_drawing import draw_network
from vertibayes.report.page.placement import placed_network
from vertibayes.report.page.results import Results


def network_section(results: Results) -> Section:
    """Return the section of the network."""
    placed = placed_network(results)
    return Section(
        "network",
        "The network",
        ("Each box is a variable, and each arrow says that the probabilities of the lower variable "
         "depend on the upper one; an arrow does not show a cause.",),
        [
            Drawing("network-view", draw_network(placed, results.sites)),
            Slot("cpt-panel"),
            Slot("what-if"),
        ],
    )  # fmt: skip
