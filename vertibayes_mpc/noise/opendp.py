"""OpenDP's samplers of noise for vectors of integers, which draw by exact rational arithmetic."""

from __future__ import annotations

from functools import cache
from typing import Any

from vertibayes_mpc.extras import load

FEATURE = "contrib"


@cache
def measurement(kind: str, scale: float) -> Any:
    """Return OpenDP's sampler of "laplace" or "gaussian" noise for vectors of integers.

    The import takes a tenth of a second, and happens at the first draw. OpenDP requires a global
    consent, which is withdrawn afterwards unless the program had given it before.
    """
    measurements, mod = load("opendp.measurements", "noise"), load("opendp.mod", "noise")
    consented = FEATURE in mod.GLOBAL_FEATURES
    mod.enable_features(FEATURE)
    try:
        return _made(measurements, kind, scale)
    finally:
        if not consented:
            mod.disable_features(FEATURE)


def _made(measurements: Any, kind: str, scale: float) -> Any:
    domains, metrics = load("opendp.domains", "noise"), load("opendp.metrics", "noise")
    vectors = domains.vector_domain(domains.atom_domain(T="i64"))
    if kind == "laplace":
        return measurements.make_laplace(vectors, metrics.l1_distance(T="i64"), scale=scale)
    return measurements.make_gaussian(vectors, metrics.l2_distance(T="f64"), scale=scale)
