import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes_protocols.site.column_builder import (
    ColumnBuilder,
    KeyBuilder,
    PackedTexts,
    packed_ascii,
)
from vertibayes_protocols.site.identifiers import order_of
from vertibayes_protocols.site.text_column import TextColumn

short = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
plain = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=9)
long = st.sampled_from(["x" * 65, "é" * 33, "a\0"])


@given(st.lists(st.lists(short | long, max_size=6), max_size=4))
def test_identifiers_are_kept_once_in_the_order_of_their_first_record(batches):
    keys, plain = KeyBuilder(), ColumnBuilder()
    for batch in batches:
        keys.add(batch)
        plain.add(batch)
    texts, places = keys.finish()
    others, same = plain.finish()
    assert list(texts) == list(others) and places.tolist() == same.tolist()
    assert [texts[place] for place in range(len(texts))] == list(others)


@given(st.lists(short.filter(lambda text: "\0" not in text), max_size=20))
def test_packed_texts_have_the_order_of_their_characters(texts):
    keys = KeyBuilder()
    keys.add(texts)
    column = TextColumn(*keys.finish())
    assert isinstance(column.texts, PackedTexts)
    assert [texts[place] for place in order_of(column)] == sorted(texts)
    assert list(column.texts[1:]) == list(dict.fromkeys(texts))[1:]


@settings(max_examples=50)
@given(st.lists(plain, min_size=1) | st.lists(short | plain, min_size=1), st.data())
def test_texts_one_after_the_other_are_packed_or_left_to_python(texts, data):
    encoded = [text.encode() for text in texts]
    first = data.draw(st.integers(0, len(texts) - 1))  # a batch is a part of its buffer
    offsets = np.cumsum([0, *map(len, encoded)])[first:]
    block = packed_ascii(offsets, np.frombuffer(b"".join(encoded), np.uint8))
    is_plain = all(33 <= byte < 127 for text in encoded[first:] for byte in text)
    assert (block is not None) == (is_plain and any(encoded[first:]))
    if block is not None:
        assert list(PackedTexts(block)) == texts[first:]


def test_many_identifiers_with_a_repetition_far_away():
    names = [f"p{place:07}" for place in np.random.default_rng(0).permutation(150_000)]
    keys = KeyBuilder()
    keys.add(names)
    keys.add([names[7]])
    texts, places = keys.finish()
    assert list(texts) == names and places[-1] == 7 and (places[:-1] == np.arange(150_000)).all()


def test_places_take_the_fewest_bytes_that_hold_them():
    kinds = {256: np.uint8, 257: np.uint16, 65_536: np.uint16, 65_537: np.uint32}
    for count, kind in kinds.items():
        builder = ColumnBuilder()
        builder.add(map(str, range(100)))
        builder.add(map(str, range(count)))
        texts, places = builder.finish()
        assert places.dtype == kind and len(texts) == count
        assert places.tolist() == [*range(100), *range(count)]
