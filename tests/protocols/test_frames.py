"""Frames between a party and the relay, and the order in which they leave."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.transports import frames
from vertibayes_protocols.transports.frames import (
    ABSENT,
    AWAY,
    BEAT,
    PIECE,
    TAKEN,
    Mark,
    Outgoing,
    read_frame,
    write_frame,
)

MARK = Mark(b"s" * 16, 3, 1, 2)


@given(
    st.sampled_from(frames.MARKED),
    st.text(max_size=60),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**64 - 1),
    st.integers(1, frames.MOST_PIECES),
    st.data(),
)
def test_a_frame_is_read_as_it_was_written(kind, address, stream, number, count, data):
    mark = Mark(stream, number, data.draw(st.integers(0, count - 1)), count)
    piece = data.draw(st.binary(max_size=50)) if kind == PIECE else b""
    assert read_frame(write_frame(kind, address, mark, piece)) == (kind, address, mark, piece)


@given(st.binary(max_size=80))
def test_other_bytes_are_a_value_error_or_a_frame(data):
    try:
        frame = read_frame(data)
    except ValueError:
        return
    assert write_frame(*frame) == data


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"\x01",
        bytes((ABSENT + 1, 0)),
        write_frame(PIECE, "b", MARK)[:-1],
        write_frame(PIECE, "b", MARK._replace(piece=2)),
        write_frame(PIECE, "b", MARK._replace(pieces=frames.MOST_PIECES + 1)),
        write_frame(PIECE, "b", MARK, bytes(frames.PIECE_BYTES + 1)),
        write_frame(TAKEN, "b", MARK, b"x"),
        write_frame(BEAT) + b"x",
    ],
)
def test_a_frame_that_is_cut_short_too_long_or_without_its_numbers_is_refused(wrong):
    with pytest.raises(ValueError, match=r"a frame|a piece"):
        read_frame(wrong)


def leaving(out, count):
    async def leave():
        return [await out.take() for _ in range(count)]

    return asyncio.run(leave())


def test_receipts_leave_before_pieces_and_each_senders_bytes_are_counted():
    out = Outgoing()
    pieces = [write_frame(PIECE, "b", MARK, bytes(n)) for n in (10, 20)]
    for piece, sender in zip(pieces, "ac", strict=True):
        out.put(piece, sender)
    out.put(away := write_frame(AWAY, "b", MARK))
    assert out.pieces.sizes == {"a": len(pieces[0]), "c": len(pieces[1])}
    assert leaving(out, 3) == [("", away), ("a", pieces[0]), ("c", pieces[1])]
    assert out.is_empty() and out.pieces.sizes == out.small.sizes == {}


@pytest.mark.parametrize("kind", [PIECE, TAKEN])
def test_who_sends_much_waits_for_the_turns_of_others(kind):
    out, frame = Outgoing(), write_frame(kind, "b", MARK)
    for sender in "aaaaabcb":
        out.put(frame, sender)
    assert "".join(sender for sender, _ in leaving(out, 8)) == "abcabaaa"


def test_receipts_without_end_keep_no_piece_back():
    """A piece follows on as many bytes of receipts; alone, receipts leave at once."""
    out, receipt = Outgoing(), write_frame(TAKEN, "b", MARK)
    most = -(-frames.PIECE_BYTES // len(receipt))
    for _ in range(4 * most):
        out.put(receipt, "flood")
    leaving(out, most)
    for _ in range(2):
        out.put(write_frame(PIECE, "b", MARK), "a")
    left = [sender for sender, _ in leaving(out, 3 * most + 2)]
    assert [place for place, sender in enumerate(left) if sender == "a"] == [most, 2 * most + 1]
