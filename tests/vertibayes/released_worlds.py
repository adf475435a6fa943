"""A study without a federation: winners by tables, and a rule on pooled tables. The oracle."""

import numpy as np

from vertibayes.choosing import TableChooser
from vertibayes_mpc.lookups import rounded


def by_rule(tables, rule, seed=0):
    """Release tables by a rule, with noise of the rule's size."""
    if rule.kind == "exact":
        return tables
    if rule.kind == "cut":
        return [np.where(table < rule.fewest, 0, table) for table in tables]
    if rule.kind == "rounded":
        records = int(tables[0].sum())
        return [rounded(rule.fewest, records)(table) for table in tables]
    rng, scale = np.random.default_rng(seed), len(tables) / rule.epsilon
    return [table + np.rint(rng.laplace(0, scale, table.shape)).astype(int) for table in tables]


class PooledStudy(TableChooser):
    """Answers the steps of a learner from a counter, and keeps them."""

    def __init__(self, counter):
        super().__init__(counter)
        self.steps = []

    def choose(self, choices):
        self.steps.append(choices)
        return super().choose(choices)

    def release(self, request):
        self.steps.append(request)
        tables = self._counter.tables(request.families, missing=request.missing)
        return by_rule(tables, request.rule)
