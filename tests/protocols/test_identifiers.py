"""Identifiers in their normal form: rules, several columns, records that match nobody."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.identifiers import RULES, Identifiers, combined, rule_of
from vertibayes_protocols.site.text_column import TextColumn


def identifiers(*texts, rule="exact", **options):
    return Identifiers.of("a file", {"id": TextColumn.of(texts)}, (rule,), **options)


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        ("exact", ["A1"]),
        ("text", ["Bo  Ek", " bo ek ", "\uff22\uff4f Ek", "BO\u00a0EK"]),
        ("digits", ["0042", "42", " 4-2", "\u0664\u0662", "\uff14\uff12"]),
        ("name", ["Ångström", "ANGSTRO\u0308M", "A\u030angstrom ", "angström, 2"]),
        ("date:%d.%m.%Y", ["3.1.1999", "03.01.1999", " 03.01.1999 "]),
    ],
)
def test_texts_of_one_person_have_one_form(rule, texts):
    apply = rule_of(rule)
    assert len({apply(text) for text in texts}) == 1 and apply(texts[0])


@given(st.sampled_from(sorted(RULES)), st.text())
def test_a_normal_form_is_its_own_normal_form(rule, text):
    once = rule_of(rule)(text)
    assert rule_of(rule)(once) == once


@given(st.dates())
def test_a_date_is_the_same_in_any_declared_format(date):
    day, month, year = date.day, date.month, f"{date.year:04d}"
    assert rule_of("date:%d.%m.%Y")(f"{day}.{month}.{year}") == date.isoformat()
    assert rule_of("date:%m/%d/%Y")(f" {month}/{day}/{year}") == date.isoformat()
    assert rule_of("date:%Y-%m-%d")(date.isoformat()) == date.isoformat()


@pytest.mark.parametrize(
    "rule", ["soundex", "date:", "date:%d.%m.%y", "date:%d.%b.%Y", "date:%d.%d.%m.%Y", "date"]
)
def test_a_rule_that_does_not_exist_or_guesses_is_refused(rule):
    with pytest.raises(ValueError, match=r"rule of identifiers|each once"):
        rule_of(rule)


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        ("exact", ["", "  ", "NA"]),
        ("digits", ["000", "abc", ""]),
        ("name", ["12", "-"]),
        ("date:%d.%m.%Y", ["31.02.1999", "1999-01-03", "today"]),
    ],
)
def test_a_record_without_a_valid_identifier_matches_nobody(rule, texts):
    good = {"exact": "x", "digits": "7", "name": "x"}.get(rule, "1.1.2000")
    found = identifiers(*texts, good, rule=rule, missing=["NA"])
    assert len(found) == 1 and found.incomplete == len(texts)
    assert found.records.tolist() == [len(texts)]
    assert f"{len(texts)} records without a valid identifier match nobody" in found.findings()


def test_the_name_of_the_rule_is_part_of_the_form():
    (exact,), (digits,) = identifiers("7").forms, identifiers("7", rule="digits").forms
    assert exact != digits


def test_parts_of_several_columns_cannot_be_taken_for_each_other():
    def of(*columns):
        named = {f"c{place}": TextColumn.of(column) for place, column in enumerate(columns)}
        return Identifiers.of("a file", named, ("exact",) * len(columns))

    assert len({*of(["1", "12"], ["23", "3"]).forms}) == 2
    assert of(["1", ""], ["2", "3"]).incomplete == 1


def test_duplicates_are_refused_with_both_records_and_no_identifier():
    with pytest.raises(DataError) as caught:
        identifiers("secret-1", "other", " SECRET-1", rule="text")
    assert "records 1 and 3 have the same identifier in 'id'" in str(caught.value)
    assert "correct one" in str(caught.value) and "ecret" not in str(caught.value).lower()


def test_duplicates_can_be_dropped_and_then_none_of_them_matches():
    found = identifiers("1", "2", "01", "3", "001", rule="digits", drop=True)
    assert found.records.tolist() == [1, 3] and found.dropped == 3
    assert "3 records that share an identifier match nobody" in found.findings()


def test_a_column_in_which_the_rule_finds_no_identifier_is_refused():
    with pytest.raises(DataError, match="no record has an identifier in 'id' by the rules digits"):
        identifiers("a", "b", rule="digits")


def test_whole_numbers_as_decimals_are_no_digits():
    """Person 1 of this site would be person 10 of another one."""
    with pytest.raises(DataError, match=r"'id' has whole numbers that are written as decimals"):
        identifiers("1.0", "2.0", "", rule="digits")
    assert len(identifiers("1.5", "12.0", rule="digits")) == 2


@pytest.mark.parametrize(
    ("texts", "shape"),
    [
        (["1", " 23 ", ""], "whole numbers, of 1 to 2 characters"),
        (["1.0", "23.0"], "numbers with a decimal point, of 3 to 4"),
        (["1999-01-31", "2001-1-3"], "dates that begin with the year"),
        (["31.1.1999", "1.12.01"], "dates that end with the year"),
        (["Ek", "Öberg"], "letters alone"),
        (["A17", "B18"], "letters and digits"),
        (["A17", "B-18", "3"], "texts of several kinds, of 1 to 4"),
    ],
)
def test_what_is_in_a_column_is_said_without_a_text_of_it(texts, shape):
    (said,) = identifiers(*texts).shapes
    assert said.startswith(f"the column 'id' has {shape}")


def test_each_column_needs_a_rule():
    with pytest.raises(ValueError, match=r"1 columns \(id\), 2 rules \(exact, name\)"):
        Identifiers.of("a file", {"id": TextColumn.of(["x"])}, ("exact", "name"))


@pytest.mark.parametrize(
    ("texts", "rule"),
    [(["01", "2"], "digits"), (["Ann", "BOB"], "text"), ([" x", "y"], "text"), (["1", "23"], "")],
)
def test_what_a_column_has_advises_a_rule(texts, rule):
    advice = identifiers(*texts).advice
    assert len(advice) == bool(rule) and all(f"the rule {rule} joins them" in a for a in advice)


@given(st.lists(st.text("ab "), min_size=1, unique_by=str.strip), st.randoms())
def test_records_in_another_order_keep_their_identifiers(texts, random):
    texts = [text for text in texts if text.strip()] or ["a"]
    found = identifiers(*texts, "")
    order = list(range(len(texts) + 1))
    random.shuffle(order)
    moved = found.take(np.array(order), len(order))
    forms = dict(zip(found.records.tolist(), found.forms, strict=True))
    again = {order[at]: form for at, form in zip(moved.records, moved.forms, strict=True)}
    assert again == forms
    assert [*moved.by_form()] == sorted(moved.records, key=lambda at: forms[order[at]])


@given(st.lists(st.tuples(st.text("a1:", max_size=2), st.text("a1:", max_size=2)), min_size=1))
def test_combined_columns_distinguish_what_their_parts_distinguish(pairs):
    one, other = (TextColumn.of(each) for each in zip(*pairs, strict=True))
    both = combined([one, other])
    texts = [both.texts[place] for place in both.places]
    whole = [pair if all(pair) else "" for pair in pairs]
    assert [texts.index(text) for text in texts] == [whole.index(pair) for pair in whole]
