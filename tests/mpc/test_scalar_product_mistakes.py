"""The n-party scalar product: what a caller and a peer may do wrong."""

from dataclasses import replace

import numpy as np
import pytest

from tests.mpc.test_scalar_product import keys_of, ones, product_of, programs
from tests.randomness import HashStream
from tests.tampering import changing, of_another_query, run_changing
from vertibayes_mpc.errors import (
    DealReusedError,
    MalformedMessageError,
    ProtocolError,
    UnexpectedMessageError,
)
from vertibayes_mpc.randomness import StreamKey
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scalar_product import (
    MaskedFactor,
    MaskedMasks,
    Multiplier,
    Product,
    ProductCorrection,
    scalar_product,
    subprotocols,
)
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.sharing import Share

# ---- a caller's mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parties": ()}, "at least 2"),
        ({"parties": ("a",)}, "at least 2"),
        ({"parties": ("a", "b", "a")}, "each once"),
        ({"parties": ("a", "dealer")}, "dealer is the dealer"),
        ({"count": -1}, "must not be negative"),
        ({"records": -1}, "must not be negative"),
    ],
)
def test_products_that_make_no_sense_are_refused(changes, reason):
    given_ = {
        "study": b"s", "id": b"i", "ring": Ring(16), "parties": ("a", "b"), "count": 1, "records": 1
    }  # fmt: skip
    with pytest.raises(ValueError, match=reason):
        Product(**(given_ | changes))


def test_the_dealer_opens_nothing():
    """It knows all masks: from the shares it would read the factors."""
    product = product_of(2)
    own = Multiplier("a", keys_of(product)["a"])
    with pytest.raises(ValueError, match="receiver must not be the dealer"):
        next(scalar_product(own, product, ones(product)["a"], "dealer"))
    assert not own.used


def test_a_product_of_one_party_has_no_subprotocols():
    with pytest.raises(ValueError, match="at least 2 parties, got 1"):
        subprotocols(1)


@pytest.mark.parametrize(
    ("party", "vectors", "error", "reason"),
    [
        ("z", np.ones((1, 4), np.uint16), ValueError, "z is not one of"),
        ("a", np.ones((1, 4), np.uint32), TypeError, "uint32"),
        ("a", np.ones((1, 4), np.int64), TypeError, "int64"),
        ("a", np.ones((1, 5), np.uint16), ValueError, r"\(1, 5\)"),
        ("a", np.ones(4, np.uint16), ValueError, r"\(4,\)"),
    ],
)
def test_vectors_of_another_shape_or_type_are_refused(party, vectors, error, reason):
    with pytest.raises(error, match=reason):
        next(scalar_product(Multiplier(party, HashStream(b"")), product_of(2), vectors, "analyst"))


def test_masks_are_used_once():
    product, own = product_of(2), Multiplier("a", HashStream(b"a"))
    vectors = np.ones(product.shape, np.uint16)
    next(scalar_product(own, product, vectors, "analyst"))
    for again in (vectors, 0 * vectors):
        with pytest.raises(DealReusedError):
            next(scalar_product(own, product, again, "analyst"))
    remembered = Multiplier("a", HashStream(b"a"), set(own.used))
    with pytest.raises(DealReusedError):
        next(scalar_product(remembered, product, vectors, "analyst"))
    next(scalar_product(own, product_of(2, name=b"another"), vectors, "analyst"))


def test_vectors_that_are_refused_use_no_masks():
    own = Multiplier("a", HashStream(b"a"))
    with pytest.raises(TypeError):
        next(scalar_product(own, product_of(2), np.ones((1, 4)), "analyst"))
    assert not own.used


def test_no_secret_in_a_repr():
    own = Multiplier("a", StreamKey(b"secret" * 6))
    assert "secret" not in repr(own)
    assert "123" not in repr(MaskedFactor(np.array([123], np.uint16), b""))


# ---- a peer's mistakes ---------------------------------------------------------------------------


def error_of(sender, kind, change, error):
    """Run a product of three with changed messages; return the error, which must come."""
    product = product_of(3)
    with pytest.raises(error) as caught:
        run_changing(programs(product, ones(product)), changing(kind, change, sender))
    assert caught.value.party == sender
    return caught.value


KINDS = [("b", MaskedFactor), ("dealer", MaskedMasks), ("dealer", ProductCorrection), ("c", Share)]
WRONG = {
    "shape": lambda values: values[..., :-1],
    "axes": lambda values: values[None],
    "type": lambda values: values.astype(np.uint32),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("sender", "kind"), KINDS)
def test_a_message_of_a_wrong_shape_or_type_names_its_sender(sender, kind, wrong):
    def change(message):
        return replace(message, values=WRONG[wrong](message.values))

    error_of(sender, kind, change, MalformedMessageError)


@pytest.mark.parametrize(("sender", "kind"), KINDS)
def test_a_message_of_another_kind_names_its_sender(sender, kind):
    def change(message):
        return ProductCorrection(message.values, b"") if kind is Share else Share(message.values)

    error_of(sender, kind, change, UnexpectedMessageError)


@pytest.mark.parametrize(("sender", "kind"), KINDS[:3])
def test_a_message_of_another_product_names_its_sender(sender, kind):
    error = error_of(sender, kind, of_another_query, UnexpectedMessageError)
    assert "another query" in error.reason


def test_a_message_sent_again_is_not_taken_in_the_next_subprotocol():
    first = []

    def change(message):
        first.append(message)
        return first[0]

    error_of("b", MaskedFactor, change, UnexpectedMessageError)


@pytest.mark.parametrize("missing", ["b", "dealer"])
def test_who_is_missing_is_named(missing):
    product = product_of(3)
    given_ = programs(product, ones(product))
    del given_[missing]
    with pytest.raises(ProtocolError) as caught:
        run_all(given_)
    assert missing in caught.value.parties


def test_who_stops_half_way_is_named():
    product = product_of(3)
    given_ = programs(product, ones(product))
    whole = given_["c"]

    def half():
        yield next(whole)
        yield Round({}, {})

    with pytest.raises(ProtocolError) as caught:
        run_all(given_ | {"c": half()})
    assert "c" in caught.value.parties
