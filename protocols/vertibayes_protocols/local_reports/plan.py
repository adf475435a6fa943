"""What all people agree to report, before anybody does: questions, eps, and who answers which.

    question                     answered by a frequency oracle or with noise
    class                        the code of the class
    feature, class               state * classes + class, for each categorical feature
    number, class                approach 1, 2 or 3, for each number; and again for its square

    reports="one"                each person draws one question, and answers it with the whole eps
    reports="all"                each person answers all q questions, each with eps / q
    reports="all_at_full_eps"    each person answers all q questions, each with eps: q eps in all

The first is what section 3.1.2 of the paper describes. The last is how its figure 2 was made, as
far as its accuracies show; the paper states eps, and the promise of the plan states q eps.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from vertibayes_mpc.oracles import ORACLES, FrequencyOracle, ThresholdHistogram, best_oracle
from vertibayes_protocols import wire
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.local_reports.bins import binned_data, binned_schema
from vertibayes_protocols.local_reports.projection import Projection
from vertibayes_protocols.local_reports.questions import (
    CodeQuestion,
    LaplaceQuestion,
    OneBitQuestion,
    Question,
)
from vertibayes_protocols.promise import Promise
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import LocalData, Numeric
from vertibayes_protocols.variables import Variable

REPORTS = ("one", "all", "all_at_full_eps")
APPROACHES = (1, 2, 3)
MOST_BINS = 65_000
PRIVATE_MATRIX = "the projection, which was fitted on private records"


@dataclass(frozen=True, kw_only=True)
class ReportPlan:
    """What people report for a naive Bayes model, and how it is perturbed.

    Parameters
    ----------
    schema : Schema
        The class and the features of a person's record. A value that may be missing is declared by
        ``missing=True`` of its variable, and then has a code that the model leaves out.
    eps : float
        The privacy parameter: of a person's whole report, except with ``all_at_full_eps``.
    reports : {"one", "all", "all_at_full_eps"}, default="one"
        Which questions a person answers, and with which part of eps.
    oracle : {"auto", "de", "sue", "oue", "she", "the", "ss"}, default="auto"
        How codes are perturbed; "auto" takes the oracle of the least variance for each question.
    theta : float, optional
        The threshold of the oracle "the".
    bins : int, optional
        If given, numbers are cut into as many bins of equal width over their bounds, and reported
        as codes; otherwise the model is Gaussian.
    approach : {1, 2, 3}, default=3
        How numbers are reported without bins: 1, all with Laplace noise in one answer; 2, one bit
        about one number; 3, one number with Laplace noise.
    missing : bool, default=False
        Whether numbers may be missing. In bins they have a code that the model leaves out. Without
        bins they count as the middle of the bounds, and draw the estimated mean there.
    projection : Projection, optional
        What people apply to their numbers first; it cannot be sent.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or bounds are not finite and ascending.

    References
    ----------
    .. [1] E. Yilmaz, M. Al-Rubaie, J. M. Chang (2019). Locally Differentially Private Naive Bayes
       Classification. Sections 2.2.3, 3.1 and 3.2.

    Examples
    --------
    >>> schema = Schema(Variable("ill", ("no", "yes")), {"age": Numeric("age", 0, 100)})
    >>> [question.name for question in ReportPlan(schema=schema, eps=1.0).questions]
    ['ill', 'age, ill', 'square of age, ill']
    >>> plan = ReportPlan(schema=schema, eps=1.0, bins=4)
    >>> [(question.name, question.oracle.name) for question in plan.questions]
    [('ill', 'de'), ('age, ill', 'ss')]
    """

    schema: Schema
    eps: float
    reports: str = "one"
    oracle: str = "auto"
    theta: float | None = None
    bins: int | None = None
    approach: int = 3
    missing: bool = False
    projection: Projection | None = field(default=None, metadata=wire.LOCAL)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a finite number above 0, got {self.eps}")
        known = {"reports": REPORTS, "approach": APPROACHES, "oracle": ("auto", *ORACLES)}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                given = getattr(self, name)
                raise ValueError(f"{name} must be one of {choices}, got {given!r}")
        if self.theta is not None and self.oracle != "the":
            raise ValueError(f"theta is a parameter of the oracle 'the', got {self.oracle!r}")
        if self.bins is not None and not 2 <= self.bins <= MOST_BINS:
            raise ValueError(f"bins must be from 2 to {MOST_BINS}, got {self.bins}")
        for name, numeric in self.schema.numerics.items():
            if not -math.inf < numeric.low < numeric.high < math.inf:
                bounds = f"{numeric.low} to {numeric.high}"
                raise ValueError(f"{name}: bounds must be finite and ascend, got {bounds}")
        if twice := [name for name, times in Counter(self._names).items() if times > 1]:
            raise ValueError(f"two questions are named {twice[0]!r}: rename a column")
        # An eps or theta out of range is refused here. Oracles and bins of all features are made
        # when they are used, as a plan that is received must not take long.
        _ = self._code_question((self.schema.target,))
        if self._numbers:
            _ = self._number_question(*self._numbers[-1])

    @cached_property
    def model_schema(self) -> Schema:
        """The schema of the model: after the projection, with bins in place of numbers."""
        if self.bins is None:
            return replace(self._projected, centred=True)
        return binned_schema(self._projected, self.bins, missing=self.missing)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions: class, features, numbers, squares."""
        target, variables = self.model_schema.target, self.model_schema.variables
        codes = [(target,), *((variables[n], target) for n in self.model_schema.categorical)]
        return (
            *(self._code_question(members) for members in codes),
            *(self._number_question(*asked) for asked in self._numbers),
        )

    def prepare(self, data: LocalData) -> LocalData:
        """Return records as the model sees them: projected and binned, as people do first."""
        if self.projection:
            data = self.projection.apply(data)
        return data if self.bins is None else binned_data(self.model_schema, data)

    @property
    def promise(self) -> Promise:
        """What a person who reports once is promised, whoever sees the report."""
        questions = len(self.questions) if self.reports == "all_at_full_eps" else 1
        eps = _rounded_up(Fraction(self.eps) * questions)
        private = self.projection is not None and self.projection.fitted_on == "private"
        return Promise(
            eps=eps,
            delta=0.0,
            protects="report",
            mechanism=", ".join(dict.fromkeys(_mechanism(q) for q in self.questions)),
            cost=Cost.of(eps),
            whom="whoever sees the reports, the aggregator included",
            uncovered=(PRIVATE_MATRIX,) if private else (),
        )

    @cached_property
    def _projected(self) -> Schema:
        """The schema of what people have after the projection."""
        return self.projection.schema(self.schema) if self.projection else self.schema

    @cached_property
    def _numbers(self) -> list[tuple[str, tuple[Numeric, ...], int]]:
        """The name, columns and power of each question about numbers."""
        columns = () if self.bins else tuple(self._projected.numerics.values())
        if self.approach == 1 and columns:
            groups = {"all numbers": columns}
        else:
            groups = {column.name: (column,) for column in columns}
        prefixes = {1: "", 2: "square of "}
        return [
            (f"{prefix}{name}, {self.schema.target.name}", group, power)
            for power, prefix in prefixes.items()
            for name, group in groups.items()
        ]

    @cached_property
    def _names(self) -> list[str]:
        """The names of all questions, in their order."""
        target = self.schema.target.name
        coded = self._projected.features if self.bins else self._projected.categorical
        codes = [target, *(f"{name}, {target}" for name in coded)]
        return [*codes, *(name for name, *_ in self._numbers)]

    @cached_property
    def _eps_of_each(self) -> float:
        """The eps of one answer: the parts of a divided eps add up to eps at most."""
        if self.reports != "all":
            return self.eps
        questions = len(self._names)
        part = self.eps / questions
        return part if Fraction(part) * questions <= Fraction(self.eps) else math.nextafter(part, 0)

    def _number_question(self, name: str, columns: tuple[Numeric, ...], power: int) -> Question:
        kind = OneBitQuestion if self.approach == 2 else LaplaceQuestion
        return kind(name, columns, power, self.schema.target, self._eps_of_each)

    def _code_question(self, members: tuple[Variable, ...]) -> CodeQuestion:
        name = ", ".join(variable.name for variable in members)
        return CodeQuestion(name, members, self._oracle(CodeQuestion.domain_of(members)))

    def _oracle(self, domain: int) -> FrequencyOracle:
        eps = self._eps_of_each
        if self.oracle == "auto":
            return best_oracle(eps, domain)
        if self.oracle == "the":
            return ThresholdHistogram(eps=eps, domain=domain, theta=self.theta)
        return ORACLES[self.oracle](eps=eps, domain=domain)


def _rounded_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _mechanism(question: Question) -> str:
    if isinstance(question, CodeQuestion):
        return f"frequency oracle {question.oracle.name}"
    return "one bit" if isinstance(question, OneBitQuestion) else "discrete Laplace"
