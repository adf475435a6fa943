"""A chooser over an open study: the analyst and the sites learn the winners, and no table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from vertibayes_protocols.approval import Winners
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.queries.tables.masked_costs import MaskedCosts, choice_room
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Variable


class SecretChooser:
    """Asks the sites of a study which candidate wins.

    The sites score on shares, by functions of the counts that are rounded to integers: two
    candidates that differ by less than twice `score_error` may be ranked otherwise than by
    `TableChooser`. Equal tables have equal scores, and so have differences of likelihoods of the
    same counts, as those of a -> b and b -> a.

    Parameters
    ----------
    open_study : OpenStudy
        The study; see `vertibayes_protocols.opening.open_study`.

    Attributes
    ----------
    variables, records, most_variables
        As `Chooser`; the policies of the sites limit the number of variables.
    undecided : int
        In how many sets so far the candidates were so close that `TableChooser` may choose
        another.
    """

    def __init__(self, open_study: OpenStudy) -> None:
        self._open_study = open_study
        self.variables: Mapping[str, Variable] = open_study.study.variables
        self.records: int = open_study.study.records
        self.most_variables: int = open_study.most_variables
        self.undecided = 0
        self._fits = {m: fits_of(open_study.study, missing=m) for m in (False, True)}

    def choose(self, choices: Choices) -> Winners:
        """Ask which candidates win; see `Chooser.choose`.

        Raises
        ------
        QueryRefusedError, ProtocolError
            As `Session.ask`.
        """
        winners = self._open_study.choose(choices)
        self.undecided += self._open_study.joined.decided.count(False)
        return winners

    def score_error(self, choices: Choices) -> float:
        """Return how far the score of a candidate may be from its exact score, in nats."""
        return self._open_study.score_error(choices)

    def fits(self, family: Family, *, missing: bool = False) -> bool:
        """Whether the sites can score a family without revealing its table (`fits_of`)."""
        return self._fits[missing](family)

    def check(self, families: Sequence[Family], *, missing: bool = False) -> None:
        """Refuse families that could not be scored; see `Chooser.check`."""
        for family in families:
            if not self.fits(family, missing=missing):
                raise ValueError(
                    f"the table of {', '.join(family.members)} is too large to be scored without "
                    "revealing it: choose fewer parents, fewer states or more memory"
                )


def fits_of(study: Study, *, missing: bool = False) -> Callable[[Family], bool]:
    """Return what says whether the sites of a study can score a family without its table.

    All columns of the family must be committed as indicators. A query must have the memory for the
    products of the family in any order, and for as many tables of its size as there are variables:
    a set has no more candidates. The answer follows from public sizes, and is the same for all
    parties.
    """
    costs = MaskedCosts(study, study.records, missing)

    def fits(family: Family) -> bool:
        *prefix, last = family.members
        (size,) = costs.sizes(prefix, [last])
        cells = size.cells * len(study.variables)
        prefixes = combinations(family.members, len(prefix))
        memory = max(costs.choice_memory(prefix, cells) for prefix in prefixes)
        return size.narrow and memory <= choice_room(study)

    return fits
