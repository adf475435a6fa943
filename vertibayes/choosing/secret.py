"""A chooser over an open study: the analyst and the sites learn the winners, and no table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protocols.approval import Winners
from protocols.choices import Choices
from protocols.opening import OpenStudy
from protocols.variables import Family, Variable


class SecretChooser:
    """Asks the sites of a study which candidate wins.

    The sites score on shares, by logarithms of the gamma function that are rounded to integers: two
    candidates that differ by less than twice `score_error` may be ranked otherwise than by
    `TableChooser`. Equal tables have equal scores.

    Parameters
    ----------
    open_study : OpenStudy
        The study; see `protocols.opening.open_study`.

    Attributes
    ----------
    variables, records, most_variables, most_cells
        As `Chooser`; the policies of the sites limit the number of variables.
    """

    def __init__(self, open_study: OpenStudy) -> None:
        self._open_study = open_study
        self.variables: Mapping[str, Variable] = open_study.study.variables
        self.records: int = open_study.study.records
        self.most_variables: int = open_study.most_variables
        self.most_cells: int = open_study.most_choice_cells

    def choose(self, choices: Choices) -> Winners:
        """Ask which candidates win; see `Chooser.choose`.

        Raises
        ------
        QueryRefusedError, ProtocolError
            As `Session.ask`.
        """
        return self._open_study.choose(choices)

    def score_error(self, choices: Choices) -> float:
        """Return how far the score of a candidate may be from its K2 score, in nats."""
        return self._open_study.score_error(choices)

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be scored; see `Chooser.check`."""
        self._open_study.check_choices(families, missing=missing)
