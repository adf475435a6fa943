"""A hostile value in each field of each kind of message; `benchmarks/fuzz.py` tries more."""

import tracemalloc

import pytest

from tests.broken_messages import BrokenMessages
from tests.vectors.forged import at, places, put
from tests.vectors.messages import EACH_TYPE, example, message_classes
from vertibayes_mpc.errors import MalformedMessageError, UnexpectedMessageError
from vertibayes_mpc.rounds import Expect
from vertibayes_protocols.wire import decode, encode

OTHERS = list(places(EACH_TYPE))
A_PLAN = 1 << 18  # bytes that a constructor may take: a search for an oracle's theta takes 200 kB


@pytest.mark.parametrize("cls", message_classes().values(), ids=lambda cls: cls.kind)
def test_a_hostile_value_is_read_or_named_and_takes_no_more_than_its_frame(cls):
    message, expect = example(cls), Expect(cls, 10**6)
    broken = BrokenMessages(len(cls.kind), [encode(EACH_TYPE)])
    decode(encode(message), "liar", expect)  # its types are compiled
    for path in places(message):
        value = at(message, path)
        news = [broken.value(value) for _ in range(4)]
        news += [broken.long(value, 500), at(EACH_TYPE, broken.choose(OTHERS))]
        for new in news:
            body = encode(put(message, path, new))
            for sent in (body, broken.bytes(body)):
                assert peak_of(cls, sent, expect) < A_PLAN + 64 * len(sent)


def peak_of(cls, body, expect):
    """Return the memory that a body takes when it is decoded, or its sender named."""
    blamed = "liar"
    tracemalloc.start()
    try:
        assert type(decode(body, "liar", expect)) is cls
    except (MalformedMessageError, UnexpectedMessageError) as error:
        blamed = error.party
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert blamed == "liar"
    return peak
