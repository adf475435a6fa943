"""Scores of tables are those of all their cells, though most cells of wide tables add nothing."""

from math import fsum, lgamma, log

import numpy as np
import pytest

from vertibayes.table_scores import k2_scores, log_likelihoods


def n_log_n(counts):
    return fsum(n * log(n) for n in np.ravel(counts).tolist() if n)


@pytest.fixture
def tables():
    generator = np.random.default_rng(5)
    shapes = (2, 3), (4,), (3, 5, 7), (16, 16, 16)
    counts = [generator.poisson(mean, shape) for shape in shapes for mean in (0, 0.1, 1, 40)]
    return [*counts, counts[5] + 0.25]  # estimates of hidden counts are no integers


def test_log_likelihoods_are_those_of_all_cells(tables):
    expected = [n_log_n(table) - n_log_n(table.sum(axis=0)) for table in tables]
    assert log_likelihoods(tables) == pytest.approx(expected) and not log_likelihoods([])


def test_k2_scores_are_those_of_all_cells(tables):
    def score(table):
        flat, r = table.reshape(len(table), -1), len(table)
        cells = fsum(lgamma(n + 1) for n in flat.ravel().tolist())
        return cells + fsum(lgamma(r) - lgamma(n + r) for n in flat.sum(axis=0).tolist())

    assert k2_scores(tables) == pytest.approx([score(table) for table in tables])
    assert not k2_scores([])
