"""The sections of the page, in their order."""

from __future__ import annotations

from vertibayes.report.page.content import Section
from vertibayes.report.page.results import Results
from vertibayes.report.page.sections.calibration import calibration_section
from vertibayes.report.page.sections.cost import cost_section
from vertibayes.report.page.sections.data import data_section
from vertibayes.report.page.sections.files import files_section
from vertibayes.report.page.sections.methods import methods_section
from vertibayes.report.page.sections.network import network_section
from vertibayes.report.page.sections.overview import overview_section
from vertibayes.report.page.sections.probabilities import probabilities_section
from vertibayes.report.page.sections.released import released_section
from vertibayes.report.page.sections.validation import tested_section, validation_section
from vertibayes.report.page.sections.words import words_section

TITLES = {
    "learn": "Report of a Bayesian network",
    "nb": "Report of a naive Bayes classifier",
    "calibrate": "Report of a calibrated classifier",
}
PREDICTION = {"nb": tested_section, "calibrate": calibration_section}


def title_of(results: Results) -> str:
    """Return the title of the page."""
    return TITLES.get(results.command, "Report of a run")


def sections_of(results: Results) -> list[Section]:
    """Return what the page says."""
    sections = [
        overview_section(results),
        network_section(results),
        probabilities_section(results),
        PREDICTION.get(results.command, validation_section)(results),
        data_section(results),
        released_section(results),
        cost_section(results),
        methods_section(results),
    ]
    return [*sections, words_section(sections), files_section(results, sections)]
