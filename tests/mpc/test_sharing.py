import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.randomness import HashStream
from vertibayes_mpc.errors import MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import ArrayMessage, Round, send
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.sharing import Share, open_sum, send_share, zero_share

RING = Ring(16)


def keys_of(parties):
    return {
        p: {q: HashStream(min(p, q).encode() + max(p, q).encode()) for q in parties if q != p}
        for p in parties
    }


@given(st.integers(1, 6), st.integers(0, 9))
def test_zero_shares_add_up_to_zero(count, length):
    keys = keys_of([f"p{i}" for i in range(count)])
    shares = [zero_share(p, peers, RING, b"name", length) for p, peers in keys.items()]
    assert not np.sum(shares, axis=0, dtype=np.uint16).any()
    if count > 1 and length > 4:
        assert all(share.any() for share in shares)


def test_another_name_gives_other_shares():
    keys = keys_of(["p", "q"])
    a, b = (zero_share("p", keys["p"], RING, name, 8) for name in (b"1", b"2"))
    assert not np.array_equal(a, b)


def test_a_sum_is_opened_in_one_round():
    values = {"p": np.array([1, 65_535], np.uint16), "q": np.array([2, 3], np.uint16)}
    programs = {p: send_share(v, RING, "analyst") for p, v in values.items()}
    outputs, transcript = run_all({**programs, "analyst": open_sum(["p", "q"], RING, 2)})
    assert outputs["analyst"].tolist() == [3, 2]
    assert [(type(s.message), s.depth) for s in transcript] == [(Share, 1), (Share, 1)]


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(8, np.uint8),  # too long
        np.zeros(6, np.uint8),
        np.zeros((1, 7), np.uint8),
        np.zeros(7, np.uint16),
        np.zeros(4, np.uint16),  # elements that are not packed
        np.full(7, 0xFF, np.uint8),  # no end of four elements of 13 bits: padded to 14
    ],
)
def test_a_share_that_is_not_packed_names_its_sender(bad):
    programs = {"q": send({"analyst": Share(bad)}), "analyst": open_sum(["q"], Ring(13), 4)}
    with pytest.raises(MalformedMessageError) as caught:
        run_all(programs)
    assert caught.value.party == "q"


def test_a_message_of_another_kind_names_its_sender():
    def wrong():
        yield Round({"analyst": ArrayMessage(np.zeros(4, np.uint8))}, {})

    with pytest.raises(UnexpectedMessageError) as caught:
        run_all({"q": wrong(), "analyst": open_sum(["q"], RING, 2)})
    assert caught.value.party == "q"


def test_no_value_in_a_repr():
    assert "123" not in repr(Share(np.array([123], np.uint8)))
