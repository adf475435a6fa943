"""Reports of one person or of many: plain arrays, which can be sent as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vertibayes_protocols.local_reports.questions import Answers


@dataclass(frozen=True)
class Reports:
    """What people report: for each question that somebody answers, one row per answer.

    The rows of different questions belong to different people, or, where each person answers all
    questions, rows at the same place belong to the same person. `ReportPlan.questions` has the
    names of the questions. The arrays have the types and shapes that `perturb` of a question
    returns: integers, which `numpy.savez` stores.

    Parameters
    ----------
    answers : mapping of str to ndarray of shape (n, ...)
        The answers to each question, by its name.
    """

    answers: Mapping[str, Answers] = field(repr=False)

    def __len__(self) -> int:
        """Return the number of answers, to all questions together."""
        return sum(len(rows) for rows in self.answers.values())
