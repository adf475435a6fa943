import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.randomness import SeededRandomness
from vertibayes_mpc.cpace import Confirmation, Point, Side, generator, same_secret
from vertibayes_mpc.elligator import elligator2
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.prefixed import prefixed
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scheduler import run_all

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "cpace.json").read_text())
SESSION = b"session"


def unhex(name):
    return bytes.fromhex(VECTORS[name])


def compare(secrets):
    """Compare the secrets of all parties, pair by pair."""
    return run_all(
        {
            party: same_secret(
                party,
                {peer: secret for peer in secrets if peer != party},
                SESSION,
                SeededRandomness(party.encode()),
            )
            for party, secret in secrets.items()
        }
    )


def test_the_vectors_of_the_draft():
    found = generator(unhex("secret"), unhex("names"), unhex("session"))
    assert found == unhex("generator")
    sides = [Side(found, bytes.fromhex(side["scalar"])) for side in VECTORS["sides"]]
    assert [side.point.hex() for side in sides] == [side["point"] for side in VECTORS["sides"]]
    data = [bytes.fromhex(side["data"]) for side in VECTORS["sides"]]
    for one, other in ((0, 1), (1, 0)):
        key = sides[one].key(sides[other].point, unhex("session"), data[one], data[other])
        assert key == unhex("key")


@pytest.mark.parametrize("length", [0, 1, 127, 128, 300, 20_000])
def test_lengths_are_told_so_that_no_two_lists_of_parts_are_one(length):
    low = length & 127
    wanted = bytes([low]) if length < 128 else None
    assert wanted is None or prefixed(bytes(length))[:1] == wanted
    assert len(prefixed(bytes(length))) - length == max(1, -(-length.bit_length() // 7))
    assert prefixed(bytes(length), b"x") != prefixed(bytes(length) + b"x")


@given(st.integers(0, 2**255 - 20))
def test_hashed_points_are_all_on_the_curve(field_element):
    """A point of the twist would tell each peer one bit of the secret in each run."""
    p, u = 2**255 - 19, elligator2([field_element])[0]
    assert pow(u * (u * u + 486_662 * u + 1), (p - 1) // 2, p) in (0, 1)


@pytest.mark.parametrize("secrets", [b"xxx", b"xxy", b"xyx", b"yxx", b"xyz"])
def test_each_two_learn_whether_their_secrets_are_equal(secrets):
    of = dict(zip("abc", (bytes([byte]) for byte in secrets), strict=True))
    outputs, transcript = compare(of)
    for one, other in combinations("abc", 2):
        assert outputs[one][other] == outputs[other][one] == (of[one] == of[other])
    codes = [sent for sent in transcript if isinstance(sent.message, Confirmation)]
    assert len(codes) == 6 and len(transcript) == 12
    assert all(s.depth == (2 if s.sender < s.receiver else 3) for s in codes if s.sender != "b")
    assert max(sent.depth for sent in transcript) == 3


def test_nothing_sent_is_of_use_for_testing_another_guess():
    """The attack on a keyed digest, which its receiver tests against any number of guesses.

    Here the receiver has all that it needs for its own guess; for another it would have to know
    its own scalar times another hashed point. Trying its scalar with that point finds no key.
    """
    secret, guess = b"the list of a", b"another list"
    _, transcript = compare({"a": secret, "b": guess})
    point = next(s.message.value for s in transcript if s.sender == "a")
    code = next(s.message.code for s in transcript if s.sender == "a" and s.depth == 2)
    scalar = SeededRandomness(b"b").bytes(32)

    def code_for(base):
        from vertibayes_mpc.cpace import _code, _names

        side = Side(generator(base, _names("a", "b"), SESSION), scalar)
        return _code(side.key(point, SESSION), "a", "b")

    assert code_for(secret) != code and code_for(guess) != code
    _, honest = compare({"a": secret, "b": secret})
    code = next(s.message.code for s in honest if s.sender == "a" and s.depth == 2)
    assert code_for(secret) == code  # so the attempt fits where the one guess was right


def test_another_session_or_another_scalar_is_another_point():
    first = Side(generator(b"s", b"n", b"1"), bytes(32)).point
    assert first != Side(generator(b"s", b"n", b"2"), bytes(32)).point
    assert first != Side(generator(b"s", b"n", b"1"), bytes([8] * 32)).point


def side_of_a():
    return same_secret("a", {"b": b"secret"}, SESSION, SeededRandomness())


def test_what_is_sent_back_confirms_nothing():
    program = side_of_a()
    sent = next(program).outbox["b"]
    step = program.send({"b": sent})
    with pytest.raises(StopIteration) as stopped:
        program.send({"b": step.outbox["b"]})
    assert stopped.value.value == {"b": False}


def test_a_comparison_is_counted_before_its_code_is_sent_and_not_before():
    """A peer that has the code knows whether its guess was right; it need not send its own."""
    counted = []
    program = same_secret("a", {"b": b"secret"}, SESSION, SeededRandomness(), counted.extend)
    points = next(program).outbox
    assert isinstance(points["b"], Point) and not counted
    step = program.send({"b": Point(Side(bytes([9] + [0] * 31), bytes([8] * 32)).point)})
    assert isinstance(step.outbox["b"], Confirmation) and counted == ["b"]


@pytest.mark.parametrize("point", [*map(bytes.fromhex, VECTORS["small_order"]), b"", bytes(31)])
def test_a_point_of_small_order_or_none_names_its_sender(point):
    program = side_of_a()
    next(program)
    with pytest.raises(MalformedMessageError, match="small order") as caught:
        program.send({"b": Point(point)})
    assert caught.value.party == "b"


@pytest.mark.parametrize("code", [b"", bytes(31), bytes(33)])
def test_a_code_of_another_length_does_not_fit(code):
    program = side_of_a()
    next(program)
    step = program.send({"b": Point(Side(bytes([9] + [0] * 31), bytes([8] * 32)).point)})
    assert isinstance(step, Round)
    with pytest.raises(StopIteration) as caught:
        program.send({"b": Confirmation(code)})
    assert caught.value.value == {"b": False}


def test_nothing_secret_is_shown():
    side = Side(b"point", b"scalar")
    assert "point" not in repr(side) and "scalar" not in repr(side)
