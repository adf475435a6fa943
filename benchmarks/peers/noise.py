"""Drawing noise for 10,000 counts: OpenDP's sampler, diluted copies, Polya shares; numpy's beside.

numpy's Laplace is attackable (Mironov 2012), and stands here for scale alone.
"""

from __future__ import annotations

import numpy as np
from side_by_side import seconds_of

from vertibayes_mpc.noise import DilutedGeometric, DiscreteLaplace, Noise, PolyaShare

COUNTS, TIMES = 10_000, 5
ONE = "exact; one party adds the noise and is trusted"
DILUTED = "exact; all n parties trusted here (gamma = 1), (eps, 1e-5)"
POLYA = "exact; all n parties trusted"
FLOATS = "floating point: an output may certify the count"


def rows() -> list[list[str]]:
    """Measure each sampler beside its peer, in this process.

    Returns
    -------
    rows : list of list of str
        Primitive and setting, ours, the peer's name and time, the ratio, both trust models.
    """
    numpy_seconds = seconds_of(lambda: np.random.default_rng().laplace(scale=2, size=COUNTS), TIMES)
    single = _opendp()
    each = seconds_of(lambda: [single(0) for _ in range(COUNTS)], 3)
    laplace = DiscreteLaplace(eps=0.5)
    found = [
        _row("discrete Laplace, a vector", laplace, "OpenDP, count by count", each, ONE, ONE),
        _row("discrete Laplace, a vector", laplace, "numpy, a vector", numpy_seconds, ONE, FLOATS),
    ]
    own = seconds_of(lambda: laplace(COUNTS), TIMES)
    for n in (10, 100):
        diluted = DilutedGeometric(eps=0.5, delta=1e-5, gamma=1.0, n=n)
        found.append(_row(f"diluted, one of {n}", diluted, "OpenDP, a vector", own, DILUTED, ONE))
    for n in (1, 2, 10, 100, 10_000):
        share = PolyaShare(eps=0.5, n=n)
        found.append(_row(f"Polya share, one of {n:,}", share, "OpenDP, a vector", own, POLYA, ONE))
    return found


def _opendp():  # type: ignore[no-untyped-def]
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=2.0)


def _row(
    name: str, noise: Noise, peer: str, seconds: float, trust: str, peer_trust: str
) -> list[str]:
    ours = seconds_of(lambda: noise(COUNTS), TIMES)
    return [
        f"{name}, {COUNTS:,} counts, eps = 0.5",
        f"{ours * 1e3:.2f} ms",
        peer,
        f"{seconds * 1e3:.2f} ms",
        f"{seconds / ours:.3g}",
        trust,
        peer_trust,
    ]
