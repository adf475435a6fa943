import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_mpc.ring import TILE_CELLS, Ring


def elements(ring, generator, *shape):
    largest = np.uint64(2**ring.bits - 1)
    return generator.integers(0, largest, shape, np.uint64, endpoint=True).astype(ring.dtype)


@given(
    st.sampled_from([1, 2, 3, 8, 16, 32, 64]),
    st.tuples(*(st.integers(0, 5),) * 3),
    st.integers(0, 2**32),
)
def test_dot_kron_and_sums_equal_those_of_integers(bits, sizes, seed):
    ring, generator = Ring(bits), np.random.default_rng(seed)
    p, q, m = sizes
    a, b = elements(ring, generator, p, m), elements(ring, generator, q, m)
    wide_a, wide_b = a.astype(object), b.astype(object)
    modulus = 2**bits
    assert np.array_equal(ring.dot(a, b), (wide_a @ wide_b.T).astype(object) % modulus)
    assert np.array_equal(ring.row_sums(a), wide_a.sum(axis=1) % modulus)
    product = (wide_a[:, None] * wide_b[None]).reshape(p * q, m) % modulus
    assert np.array_equal(ring.kron(a, b), product)


@pytest.mark.parametrize("bits", [16, 32])
def test_dot_is_exact_with_the_largest_elements_over_many_tiles(bits):
    ring, rows = Ring(bits), TILE_CELLS + 5
    largest = np.full((1, rows), 2**bits - 1, ring.dtype)
    assert int(ring.dot(largest, largest)[0, 0]) == rows % 2**bits  # (-1)(-1) each


@pytest.mark.parametrize("bits", [16, 32])
def test_dot_with_indicators_may_say_so(bits):
    ring, generator = Ring(bits), np.random.default_rng(1)
    a = elements(ring, generator, 4, 9000)
    b = generator.integers(0, 2, (3, 9000)).astype(ring.dtype)
    assert np.array_equal(ring.dot(a, b, bits=1), ring.dot(a, b))


@pytest.mark.parametrize(("records", "bits"), [(0, 16), (65_535, 16), (65_536, 32), (10**9, 32)])
def test_the_smallest_ring_that_tells_counts_apart(records, bits):
    assert Ring.holding(records).bits == bits


def test_no_ring():
    with pytest.raises(ValueError, match="from 1 to 64 bits, got 65"):
        Ring(65)
    with pytest.raises(ValueError, match="got 4294967296"):
        Ring.holding(2**32)


@pytest.mark.parametrize("bits", [1, 5, 8, 9, 16, 17, 24, 32, 33, 48, 64])
def test_packing_reduces_and_takes_whole_bytes(bits):
    ring = Ring(bits)
    values = np.array([0, 1, 2**bits - 1, 7], np.uint64).astype(ring.dtype)
    above = values + ring.dtype.type((1 << bits) % 2 ** (8 * ring.dtype.itemsize))
    packed = ring.pack(above)
    assert packed.dtype == np.uint8 and len(packed) == 4 * -(-bits // 8)
    assert np.array_equal(ring.unpack(packed), ring.reduce(values))


def test_an_element_of_24_bits_takes_three_little_endian_bytes():
    assert Ring(24).pack(np.array([0x010203], np.uint32)).tolist() == [3, 2, 1]
