"""A person's part: from a record to a report, without any message from the aggregator.

person                                   aggregator
record, plan -> client.perturb
report            -------------------->  aggregator.update
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.oracles.draws import Draws
from vertibayes_mpc.randomness import Randomness, SystemRandomness
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.local_reports.plan import ReportPlan
from vertibayes_protocols.local_reports.reports import Reports
from vertibayes_protocols.schema import Schema, check_declared
from vertibayes_protocols.site.statistics import LocalData


class Client:
    """Perturbs records as a plan says: at a person, or at a site that holds many people's records.

    Parameters
    ----------
    plan : ReportPlan
        What people report.
    randomness : Randomness, optional
        Where questions and coins are drawn from; the operating system by default. OpenDP draws
        Laplace noise from the operating system in any case.

    Notes
    -----
    Each call is a further report of the same person, and costs the eps of the plan again: a person
    reports once. The errors of a client are for the person alone: do not send them.

    Examples
    --------
    >>> from vertibayes_protocols.site.statistics import Numeric
    >>> from vertibayes_protocols.variables import Variable
    >>> schema = Schema(Variable("ill", ("no", "yes")), {"age": Numeric("age", 0, 100)})
    >>> report = Client(ReportPlan(schema=schema, eps=1.0)).perturb({"ill": "yes", "age": 31})
    >>> len(report)
    1
    """

    def __init__(self, plan: ReportPlan, randomness: Randomness | None = None) -> None:
        self.plan, self.randomness = plan, randomness or SystemRandomness()

    def perturb(self, record: Mapping[str, str | float | None]) -> Reports:
        """Perturb one record.

        Parameters
        ----------
        record : mapping of str to str or float
            A state for each variable of the schema and a number for each number. A value that is
            None or nan, or that is not given, is missing. A number beyond a bound counts as the
            bound.

        Raises
        ------
        DataError
            If a value is not a declared state or not a finite number, or is missing where the
            plan does not permit it. The message does not show the value.
        """
        return self.perturb_all(_one_record(self.plan.schema, record))

    def perturb_all(self, data: LocalData) -> Reports:
        """Perturb the records of many people, each for itself.

        Parameters
        ----------
        data : LocalData
            The records, with the columns of the schema.

        Raises
        ------
        DataError
            If a column is missing, has other states or bounds than the schema, or has missing
            values where the plan does not permit them.
        """
        check_fits(self.plan, data)
        prepared, questions = self.plan.prepare(data), self.plan.questions
        if self.plan.reports != "one":
            return Reports({q.name: q.perturb(prepared, self.randomness) for q in questions})
        chosen = Draws(self.randomness).below(len(questions), data.records)
        answers = {}
        for place, question in enumerate(questions):
            people = np.flatnonzero(chosen == place)
            if len(people):
                answers[question.name] = question.perturb(prepared.rows(people), self.randomness)
        return Reports(answers)


def _one_record(schema: Schema, record: Mapping[str, str | float | None]) -> LocalData:
    codes: dict[str, NDArray[np.int64]] = {}
    for name, variable in schema.variables.items():
        value = record.get(name)
        if not _absent(value) and value not in variable.states:
            raise DataError(
                f"{name}: the value is not a declared state; expected one of {variable.states}"
            )
        code = len(variable.states) if _absent(value) else variable.states.index(str(value))
        codes[name] = np.array([code])
    numbers = {name: np.array([_number(name, record.get(name))]) for name in schema.numerics}
    return LocalData(schema.variables, codes, schema.numerics, numbers)


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _number(name: str, value: str | float | None) -> float:
    try:
        number = nan if value is None else float(value)
    except ValueError:
        raise DataError(f"{name}: the value is not a number; expected a number") from None
    if np.isinf(number):
        raise DataError(f"{name}: the value is infinite; expected a finite number")
    return number


def check_fits(plan: ReportPlan, data: LocalData) -> None:
    """Refuse records that the plan does not fit, with a DataError."""
    check_declared("the client", plan.schema, data)
    for name, variable in plan.schema.variables.items():
        if not variable.missing and (data.codes[name] == len(variable.states)).any():
            raise DataError(
                f"{name}: a value is missing; declare the variable with missing=True in the plan"
            )
    for name in plan.schema.numerics:
        if not plan.missing and np.isnan(data.numbers[name]).any():
            raise DataError(f"{name}: a number is missing; give the plan missing=True")
