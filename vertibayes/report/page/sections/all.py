"""The sections of the page, in their order."""

from __future__ import annotations

from vertibayes.report.page.content import Section
from vertibayes.report.page.results import Results
from vertibayes.report.page.sections.network import network_section

TITLES = {
    "learn": "Report of a Bayesian network",
    "nb": "Report of a naive Bayes classifier",
    "calibrate": "Report of a calibrated classifier",
}


def title_of(results: Results) -> str:
    """Return the title of the page."""
    return TITLES.get(results.command, "Report of a run")


def sections_of(results: Results) -> list[Section]:
    """Return what the page says."""
    return [network_section(results)]
