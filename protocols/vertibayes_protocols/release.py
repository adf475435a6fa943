"""What is released of a table, and by which rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from vertibayes_protocols.variables import Family

RuleKind: TypeAlias = Literal["exact", "cut", "rounded", "laplace", "gaussian"]

MOST_FEWEST = 2**32  # more than the records of any study, and small enough for a message


@dataclass(frozen=True, slots=True)
class Rule:
    """By which rule tables are released.

    Parameters
    ----------
    kind : {"exact", "cut", "rounded", "laplace", "gaussian"}
        exact: the counts. cut: a count below `fewest` is released as 0. rounded: a count is
        released as the nearest multiple of `fewest` (`vertibayes_mpc.lookups.rounded`). laplace,
        gaussian: the counts with noise that the sites add.
    fewest : int, default=10
        With cut: the smallest count that is released. With rounded: what all released counts are
        multiples of.
    epsilon : float, default=1.0
        With noise: the privacy budget of all released tables together.
    delta : float, default=1e-6
        With gaussian: the probability that the promise fails.
    dishonest : float, default=1.0
        With noise: the share of the sites that may work with the analyst; the noise of the others
        suffices for `epsilon`. With 1, the noise of each site suffices.

    Raises
    ------
    ValueError
        If a value is out of its range; the message names it.

    Examples
    --------
    >>> Rule("cut", fewest=5).is_noisy
    False
    """

    kind: RuleKind
    fewest: int = 10
    epsilon: float = 1.0
    delta: float = 1e-6
    dishonest: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(RuleKind):
            kinds = ", ".join(get_args(RuleKind))
            raise ValueError(f"`rule` must be one of {kinds}, got {self.kind!r}")
        if self.fewest < 1:
            raise ValueError(f"`fewest` must be at least 1, got {self.fewest}")
        if self.fewest == 1 and self.kind in ("cut", "rounded"):
            raise ValueError(f"`fewest` 1 with the rule {self.kind} hides nothing: use rule exact")
        if self.fewest > MOST_FEWEST:
            raise ValueError(f"`fewest` must be at most {MOST_FEWEST}, got {self.fewest}")
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ValueError(f"`epsilon` must be above 0, got {self.epsilon}")
        if not 0 < self.delta < 1:
            raise ValueError(f"`delta` must be above 0 and below 1, got {self.delta}")
        if not 0 <= self.dishonest <= 1:
            raise ValueError(f"`dishonest` must be at least 0 and at most 1, got {self.dishonest}")

    @property
    def is_noisy(self) -> bool:
        """Whether the sites add noise."""
        return self.kind in ("laplace", "gaussian")

    @property
    def name(self) -> str:
        """The kind, with the number that it hides counts by.

        >>> Rule("rounded", fewest=5).name, Rule("laplace").name
        ('rounded 5', 'laplace')
        """
        return f"{self.kind} {self.fewest}" if self.kind in ("cut", "rounded") else self.kind

    @property
    def smallest(self) -> float:
        """The smallest number above 0 that a release shows; infinite with noise."""
        return math.inf if self.is_noisy else 1 if self.kind == "exact" else self.fewest

    @property
    def words(self) -> str:
        """What the rule does, for ledgers.

        >>> Rule("cut").words, Rule("laplace", epsilon=0.5).words
        ('counts below 10 as 0', 'Laplace noise, epsilon 0.5 for all tables together')
        """
        if self.kind == "cut":
            return f"counts below {self.fewest} as 0"
        if self.kind == "rounded":
            return f"counts rounded to multiples of {self.fewest}"
        if not self.is_noisy:
            return "exact"
        words = f"{self.kind.capitalize()} noise, {self.promise} for all tables together"
        return words if self.dishonest == 1 else f"{words}, if {self.condition}"

    @property
    def condition(self) -> str:
        """On what the promise of noise depends, in words.

        >>> Rule("laplace").condition, Rule("gaussian", dishonest=0.25).condition
        ('not all sites work with the analyst', 'at most 25% of the sites work with the analyst')
        """
        if self.dishonest == 1:
            return "not all sites work with the analyst"
        some = f"at most {self.dishonest:.0%} of the sites work" if self.dishonest else ""
        return f"{some or 'no site works'} with the analyst"

    @property
    def promise(self) -> str:
        """What noise promises.

        >>> Rule("gaussian").promise
        'epsilon 1, delta 1e-06'
        """
        delta = f", delta {self.delta:g}" if self.kind == "gaussian" else ""
        return f"epsilon {self.epsilon:g}{delta}"


@dataclass(frozen=True, slots=True)
class FamilyTables:
    """The tables that a study releases, over all records, by one rule."""

    families: tuple[Family, ...]  # one table each: axis 0 is the child, then the parents
    missing: bool  # whether a missing value is a state
    rule: Rule
