"""The oracles by name, and the one with the least variance."""

from __future__ import annotations

from functools import lru_cache

from vertibayes_mpc.oracles.direct import DirectEncoding
from vertibayes_mpc.oracles.oracle import FrequencyOracle
from vertibayes_mpc.oracles.subset import SubsetSelection
from vertibayes_mpc.oracles.summation import SummationHistogram
from vertibayes_mpc.oracles.unary import OptimalUnary, SymmetricUnary, ThresholdHistogram

ORACLES: dict[str, type[FrequencyOracle]] = {
    oracle.name: oracle
    for oracle in (
        DirectEncoding,
        SymmetricUnary,
        OptimalUnary,
        SummationHistogram,
        ThresholdHistogram,
        SubsetSelection,
    )
}
TIE = 1 + 1e-9  # variances that differ by less are equal: the cheaper oracle is taken


@lru_cache(maxsize=1024, typed=True)  # each party of a process builds the same plan several times
def best_oracle(eps: float, domain: int) -> FrequencyOracle:
    """Return the oracle with the least variance of rare values, of all except SummationHistogram.

    Parameters
    ----------
    eps, domain
        As of `FrequencyOracle`.

    Examples
    --------
    >>> [best_oracle(1.0, domain).name for domain in (2, 4, 8, 1000)]
    ['de', 'de', 'ss', 'ss']
    """
    oracles = [
        oracle(eps=eps, domain=domain)
        for oracle in ORACLES.values()
        if oracle is not SummationHistogram
    ]
    least: float = min(oracle.variance(1) for oracle in oracles)
    return next(oracle for oracle in oracles if oracle.variance(1) <= least * TIE)
