import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes_protocols.storage.block_file import BlockFile


def block(shape, fill, dtype=np.uint16):
    return np.full(shape, fill, dtype) + np.arange(shape[1]).astype(dtype)


writes = st.tuples(st.integers(0, 4), st.integers(0, 2**16 - 9), st.booleans())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(writes, max_size=15),
    st.tuples(st.integers(0, 3), st.integers(0, 5)),
    st.sampled_from([np.uint16, np.uint32]),
)
def test_it_is_a_mapping_of_blocks(writes, shape, dtype):
    """Blocks of one shape, written, written over, and deleted, are those of a dict."""
    stored, wanted = BlockFile(), {}
    for number, fill, kept in writes:
        stored[number] = wanted[number] = block(shape, fill, dtype)
        if not kept:
            del stored[number], wanted[number]
    assert set(stored) == set(wanted) and len(stored) == len(wanted)
    for number, columns in wanted.items():
        assert stored[number].dtype == dtype and stored[number].shape == shape
        assert np.array_equal(stored[number], columns)
    stored.close()


def test_blocks_of_several_shapes_and_orders_lie_side_by_side():
    blocks = [block((2, 16), 1), block((2, 16), 5).T, block((3, 7), 9), block((2, 3), 3, np.uint32)]
    stored = BlockFile()
    stored.update(enumerate(blocks))
    assert all(np.array_equal(stored[i], columns) for i, columns in enumerate(blocks))
    stored.close()


def test_a_block_that_is_not_there_is_a_key_error():
    stored = BlockFile()
    with pytest.raises(KeyError):
        stored[0]
    with pytest.raises(KeyError):
        del stored[0]
    stored.close()


def test_the_file_has_no_name_and_is_gone_once_closed(tmp_path):
    stored = BlockFile(tmp_path)
    stored[0] = block((2, 8), 1)
    assert not list(tmp_path.iterdir())
    stored.close()
    with pytest.raises(ValueError, match="closed"):
        stored[0]


def test_a_larger_block_in_the_place_of_a_smaller_one():
    blocks = BlockFile()
    blocks[0], blocks[1] = np.zeros((1, 4), np.uint16), np.ones((1, 4), np.uint16)
    blocks[0] = np.full((2, 4), 7, np.uint16)
    assert (blocks[0] == 7).all() and (blocks[1] == 1).all()
    blocks.close()
