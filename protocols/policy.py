"""What a site answers: its variables, the size of tables, the number of records."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from protocols.errors import QueryRefusedError
from protocols.variables import Rows

GIBIBYTE = 1 << 30
ROUNDING = 1e-9  # of the sum of what was spent


@dataclass(frozen=True)
class Policy:
    """A site's rules; a query that breaks one is refused with a reason.

    Parameters
    ----------
    variables : collection of str, optional
        The variables that it shows; all of its data if None.
    most_variables : int, default=8
        In one table.
    fewest_records : int, default=10
        A table counts at least so many records, and leaves out none or at least so many; no sum or
        difference of the record sets answered for is over fewer.
    most_row_sets : int, default=50
        Different record sets, in all studies together.
    most_cells : int, default=20,000,000
        In all tables of one query.
    most_memory : int, default=2**30
        Bytes that one query for tables may take at this party.
    most_failed_meets : int, default=100
        Comparisons of its list of people with another site's since the last that ended in their
        being equal, in all sessions together: each may have been a guess.
    exact_sums : bool, default=False
        Whether it takes part in sums without noise over sites that hold other records.
    most_epsilon, most_delta : float, default=1.0 and 1e-5
        The privacy budget of its records for sums and tables with noise, over all sessions: the sum
        of the eps, and of the delta, of all releases that it has taken part in.
    most_scores : int, default=0
        Records whose scores are sent to the analyst, in all sessions together.

    Raises
    ------
    ValueError, TypeError
        If a number is below 1, or the variables are one name.
    """

    variables: Collection[str] | None = None
    most_variables: int = 8
    fewest_records: int = 10
    most_row_sets: int = 50
    most_cells: int = 20_000_000
    most_memory: int = GIBIBYTE
    most_failed_meets: int = 100
    exact_sums: bool = False
    most_epsilon: float = 1.0
    most_delta: float = 1e-5
    most_scores: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.variables, str):
            raise TypeError("a policy's variables are a collection of names, not one name")
        numbers = (
            self.most_variables,
            self.fewest_records,
            self.most_row_sets,
            self.most_cells,
            self.most_memory,
            self.most_failed_meets,
        )
        if min(numbers) < 1:
            raise ValueError("a policy's numbers are at least 1")
        if not all(n >= 0 for n in (self.most_epsilon, self.most_delta, self.most_scores)):
            raise ValueError("a policy's privacy budget and scores are at least 0")

    def shows(self, variable: str) -> bool:
        """Whether a variable is shown."""
        return self.variables is None or variable in self.variables

    def check_tables(self, site: str, tables: Iterable[tuple[int, int]]) -> None:
        """Refuse tables, each of (variables, cells), that are too wide or too large together."""
        total = 0
        for variables, cells in tables:
            total += cells
            if variables > self.most_variables:
                reason = (
                    f"a table of {variables} variables, at most {self.most_variables} are allowed"
                )
                raise QueryRefusedError(site, reason)
        if total > self.most_cells:
            reason = f"tables of {total} cells, at most {self.most_cells} are allowed in a query"
            raise QueryRefusedError(site, reason)

    def check_exact(self, site: str) -> None:
        """Refuse what has no noise, unless exact sums are allowed."""
        if not self.exact_sums:
            reason = "sums without noise are not allowed: its policy does not set exact_sums"
            raise QueryRefusedError(site, reason)

    def check_budget(
        self, site: str, spent: tuple[float, float], cost: tuple[float, float]
    ) -> None:
        """Refuse a release that would overspend the budget; say how much of it is left.

        Parameters
        ----------
        site : str
            Who refuses.
        spent, cost : (float, float)
            The eps and delta of all releases so far, and of this one.
        """
        names, limits = ("epsilon", "delta"), (self.most_epsilon, self.most_delta)
        for name, limit, before, more in zip(names, limits, spent, cost, strict=True):
            if before + more > limit * (1 + ROUNDING):
                reason = (
                    f"the release costs {name} {more:.4g}: {max(limit - before, 0.0):.4g} is left "
                    f"of most_{name} = {limit:g}"
                )
                raise QueryRefusedError(site, reason)

    def check_records(self, site: str, rows: Rows, records: int) -> None:
        """Refuse tables over too few records, or over all but too few."""
        try:
            chosen = rows.count(records)
        except ValueError as error:
            raise QueryRefusedError(site, str(error)) from None
        if chosen < self.fewest_records:
            reason = f"tables over {chosen} records, at least {self.fewest_records} are wanted"
            raise QueryRefusedError(site, reason)
        if 0 < records - chosen < self.fewest_records:
            reason = (
                f"tables over {chosen} of {records} records: they would leave out "
                f"{records - chosen}, and at least {self.fewest_records} are wanted"
            )
            raise QueryRefusedError(site, reason)
