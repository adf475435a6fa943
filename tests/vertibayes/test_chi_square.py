import pytest
from scipy.stats import chi2

from vertibayes.structure.chi_square import half_quantile

DEGREES = [*range(1, 40), *range(40, 5001, 310), 5000]


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_half_quantiles_are_those_of_scipy_rounded_to_millionths(alpha):
    for degrees in DEGREES:
        assert abs(half_quantile(degrees, alpha) / 1e6 - chi2.isf(alpha, degrees) / 2) < 5.01e-7


def test_half_quantiles_to_5000_degrees_are_those_of_scipy():
    for alpha in (0.01, 0.05, 0.1):
        for degrees in (*range(1, 100), *range(100, 5001, 97)):
            expected = chi2.isf(alpha, degrees) / 2
            assert abs(half_quantile(degrees, alpha) / 1e6 - expected) < 5.01e-7


@pytest.mark.parametrize(("degrees", "alpha"), [(1, 0.9), (1, 1e-12), (2, 0.5), (10**7, 0.001)])
def test_extreme_quantiles_converge(degrees, alpha):
    assert half_quantile(degrees, alpha) / 1e6 == pytest.approx(
        chi2.isf(alpha, degrees) / 2, abs=6e-7, rel=1e-11
    )


def test_no_degree_of_freedom_has_the_threshold_0():
    assert half_quantile(0, 0.05) == 0


@pytest.mark.parametrize(("degrees", "alpha"), [(-1, 0.05), (1, 0), (1, 1)])
def test_parameters_out_of_range_are_refused(degrees, alpha):
    with pytest.raises(ValueError, match="must be"):
        half_quantile(degrees, alpha)
