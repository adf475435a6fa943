import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
)
from vertibayes_protocols.wire import ENVELOPE, Envelope, check_header, header

EXPECTED = Envelope(bytes(range(16)), "p", "q", 3, 0)
TEXT = b"body"


def test_an_envelope_is_opened_at_its_depth():
    assert check_header(header(EXPECTED._replace(depth=9), TEXT), TEXT, EXPECTED) == 9


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"session": bytes(16)}, UnexpectedMessageError, "another session"),
        ({"sender": "q"}, UnexpectedMessageError, "somebody else"),
        ({"receiver": "r"}, UnexpectedMessageError, "somebody else"),
        ({"counter": 2}, ReplayedMessageError, "message 2, delivered before"),
        ({"counter": 0}, ReplayedMessageError, "message 0, delivered before"),
        ({"counter": 4}, UnexpectedMessageError, "message 4, where message 3 is expected"),
    ],
)
def test_another_envelope_names_the_sender_that_is_expected(change, error, reason):
    with pytest.raises(error, match=reason) as caught:
        check_header(header(EXPECTED._replace(**change), TEXT), TEXT, EXPECTED)
    assert type(caught.value) is error and caught.value.party == "p"


@pytest.mark.parametrize("end", range(ENVELOPE.size))
def test_an_envelope_cut_short_is_malformed(end):
    with pytest.raises(MalformedMessageError, match=f"{end} bytes, cut short"):
        check_header(header(EXPECTED, TEXT)[:end], TEXT, EXPECTED)


@pytest.mark.parametrize("body", [b"", b"bod", b"body!"])
def test_a_body_of_another_length_is_malformed(body):
    with pytest.raises(MalformedMessageError, match=f"{len(body)} bytes, 4 announced"):
        check_header(header(EXPECTED, TEXT), body, EXPECTED)


@given(st.binary(min_size=ENVELOPE.size, max_size=ENVELOPE.size))
def test_any_other_header_blames_the_sender(other):
    with pytest.raises(ProtocolError, match=r"^p: "):
        check_header(other, TEXT, EXPECTED)
