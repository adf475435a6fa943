import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_mpc import ring as ring_module
from vertibayes_mpc.ring import HOLDING, PACKED_WORDS, TILE_CELLS, Ring


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


@pytest.mark.parametrize("bits", HOLDING)
@pytest.mark.parametrize("of_right", [None, 1])
@pytest.mark.parametrize("rows", [1 << 13, (1 << 13) + 1, TILE_CELLS + 5])
def test_dot_is_exact_with_the_largest_elements_over_many_tiles(bits, of_right, rows):
    ring = Ring(bits)
    left = np.full((1, rows), 2**bits - 1, ring.dtype)
    right = left if of_right is None else np.ones_like(left)
    expected = (2**bits - 1) * int(right[0, 0]) * rows % 2**bits
    assert int(ring.dot(left, right, bits=of_right)[0, 0]) == expected


@pytest.mark.parametrize("bits", [2, 14, 20, 24])
def test_dot_reduces_both_factors(bits):
    ring, generator = Ring(bits), np.random.default_rng(1)
    above = [generator.integers(0, 2**32, (3, 20_000), np.uint64) for _ in range(2)]
    left, right = (values.astype(ring.dtype) for values in above)
    assert np.array_equal(ring.dot(left, right), ring.dot(ring.reduce(left), ring.reduce(right)))


@pytest.mark.parametrize("bits", HOLDING)
def test_sums_in_floating_point_stay_below_2_53_or_2_24(bits, monkeypatch):
    """A pass whose sums of the largest elements were larger would be rounded."""
    largest = {np.dtype(np.float32): [0], np.dtype(np.float64): [0]}

    def product(left, right):
        found = left.astype(object) @ right.astype(np.int64).astype(object).T
        largest[right.dtype].append(found.max())
        return found.astype(np.uint64)

    monkeypatch.setattr(ring_module, "_product", product)
    ring = Ring(bits)
    for of_right in (None, 1):
        left = np.full((1, 1 << 15), 2**bits - 1, ring.dtype)
        ring.dot(left, left if of_right is None else np.ones_like(left), bits=of_right)
    assert max(largest[np.dtype(np.float64)]) <= 2**53
    assert max(largest[np.dtype(np.float32)]) <= 2**24
    assert (max(largest[np.dtype(np.float32)]) > 0) == (bits <= 16)


@pytest.mark.parametrize("bits", [16, 32])
def test_dot_with_indicators_may_say_so(bits):
    ring, generator = Ring(bits), np.random.default_rng(1)
    a = elements(ring, generator, 4, 9000)
    b = generator.integers(0, 2, (3, 9000)).astype(ring.dtype)
    assert np.array_equal(ring.dot(a, b, bits=1), ring.dot(a, b))


COUNTS = [
    (0, 14), (16_383, 14), (16_384, 16), (65_535, 16), (65_536, 20), (2**20 - 1, 20),
    (2**20, 24), (2**24 - 1, 24), (2**24, 32), (2**32 - 1, 32),
]  # fmt: skip


@pytest.mark.parametrize(("records", "bits"), COUNTS)
def test_the_smallest_ring_that_tells_counts_apart(records, bits):
    assert Ring.holding(records).bits == bits


def test_no_ring():
    with pytest.raises(ValueError, match="from 1 to 64 bits, got 65"):
        Ring(65)
    with pytest.raises(ValueError, match="got 4294967296"):
        Ring.holding(2**32)


# ---- packing -------------------------------------------------------------------------------------

SIZES = st.one_of(st.integers(0, 70), st.sampled_from([PACKED_WORDS, 4 * PACKED_WORDS + 3]))


@given(st.integers(1, 64), SIZES, st.integers(0, 2**32))
def test_packing_reduces_and_is_undone(bits, count, seed):
    ring = Ring(bits)
    above = elements(Ring(8 * ring.dtype.itemsize), np.random.default_rng(seed), count)
    packed = ring.pack(above)
    assert packed.dtype == np.uint8 and packed.shape == (ring.packed_size(count),)
    unpacked = ring.unpack(packed, count)
    assert unpacked.dtype == ring.dtype and np.array_equal(unpacked, ring.reduce(above))


@given(st.integers(1, 64), st.integers(0, 40), st.integers(0, 2**32))
def test_packed_elements_are_one_number(bits, count, seed):
    """The bits of all elements, the lowest of the first element first."""
    ring = Ring(bits)
    values = elements(ring, np.random.default_rng(seed), count)
    whole = sum(v << (place * ring.packed_bits) for place, v in enumerate(values.tolist()))
    assert ring.pack(values).tobytes() == whole.to_bytes(ring.packed_size(count), "little")


@given(st.integers(1, 64), st.binary(max_size=40), st.integers(0, 60))
def test_bytes_are_unpacked_only_if_packing_gives_them(bits, text, count):
    ring, packed = Ring(bits), np.frombuffer(text, np.uint8)
    try:
        unpacked = ring.unpack(packed, count)
    except ValueError:
        size, whole = ring.packed_size(count), int.from_bytes(text, "little")
        each = [whole >> (place * ring.packed_bits) for place in range(count + 1)]
        above = [e % 2**ring.packed_bits >> bits for e in each[:count]]
        assert len(text) != size or any(above) or each[count]
    else:
        assert ring.pack(unpacked).tobytes() == text and len(unpacked) == count


@pytest.mark.parametrize(("bits", "count"), [(14, 3), (13, 4), (20, 1), (1, 9), (7, 1)])
def test_a_bit_that_is_set_behind_the_elements_is_refused(bits, count):
    ring = Ring(bits)
    packed = ring.pack(np.zeros(count, ring.dtype))
    packed[-1] |= 0x80
    with pytest.raises(ValueError, match="are not zero"):
        ring.unpack(packed, count)


def test_a_wrong_length_says_which_is_right():
    with pytest.raises(ValueError, match="3 elements of 14 bits take 6 bytes, got 7"):
        Ring(14).unpack(np.zeros(7, np.uint8), 3)


@pytest.mark.parametrize(
    ("bits", "packed"), [(1, 1), (7, 7), (8, 8), (9, 10), (14, 14), (17, 20), (20, 20), (33, 40)]
)
def test_elements_are_as_narrow_as_words_of_64_bits_pack_to_bytes(bits, packed):
    assert Ring(bits).packed_bits == packed
    assert Ring(bits).packed_size(1000) == 1000 * packed // 8


def test_an_element_of_24_bits_takes_three_little_endian_bytes():
    assert Ring(24).pack(np.array([0x010203], np.uint32)).tolist() == [3, 2, 1]
