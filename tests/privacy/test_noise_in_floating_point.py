"""Laplace noise in floating point tells counts apart with certainty (Mironov 2012): ours does not.

I. Mironov (2012). On Significance of the Least Significant Bits for Differential Privacy. CCS.
"""

import numpy as np

from vertibayes_mpc.noise import DiscreteLaplace

DRAWS = 20_000
FINE = 2.0**53  # what 1 + noise is near 0 is a multiple of 1 / FINE: the sum is rounded near 1


def certify_not_one(outputs):
    """Return the share of outputs near 0 that the count 1 cannot have: they have finer digits."""
    near = outputs[np.abs(outputs) < 0.5]
    return float((near * FINE != np.rint(near * FINE)).sum() / len(outputs))


def test_a_quarter_of_floating_point_outputs_prove_that_the_count_is_not_one():
    noise = np.random.default_rng(1).laplace(scale=1.0, size=(2, DRAWS))
    assert 0.2 < certify_not_one(0 + noise[0]) < 0.35, "eps = 1: nothing may be proved"
    assert certify_not_one(1 + noise[1]) == 0, "the proof is never wrong"


def test_no_output_of_integer_noise_proves_anything():
    zero, one = (count + DiscreteLaplace(eps=1.0)(DRAWS) for count in (0, 1))
    assert zero.dtype == one.dtype == np.int64 and certify_not_one(zero.astype(float)) == 0
    common = range(-3, 5)
    shares = [[(outputs == value).mean() for value in common] for outputs in (zero, one)]
    assert np.abs(np.log(shares[0]) - np.log(shares[1])).max() < 1 + 0.5, "each value has both"
