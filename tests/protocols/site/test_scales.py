import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.scales import NO_ANSWER, SCALES, in_order
from vertibayes_protocols.site.text_column import TextColumn

ASCENDING = [
    ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"],
    ["disagree", "agree"],
    ["Never", "Rarely", "Sometimes", "Often", "Always", "Don't know"],
    ["not at all", "somewhat", "very much"],
    ["LOW", "NORMAL", "HIGH"],
    ["none", "mild", "moderate", "severe"],
    ["poor", "fair", "good", "very good", "excellent"],
    ["Very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"],
    ["Stimme gar nicht zu", "Stimme eher nicht zu", "teils/teils", "Stimme eher zu",
     "Stimme voll und ganz zu", "keine Angabe", "weiß nicht"],
    ["nie", "selten", "manchmal", "häufig", "immer"],
    ["sehr schlecht", "schlecht", "befriedigend", "gut", "sehr gut"],
    ["niedrig", "mittel", "hoch"],
    ["Nein", "Ja", "weiß nicht"],
    ["nein", "vielleicht", "ja"],
    ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"],
    ["1 (gar nicht)", "2", "3", "10 (sehr)"],
    ["5 strongly agree", "6", "11"],
    ["< 5", "5-9", "10-14", "15+"],
    ["under 18", "18-24", "25-64", "65 and older"],
    ["unter 18", "18 bis 64", "über 64"],
    ["up to 1,000 €", "1,000-2,000 €", "> 2,000 €"],
    ["bis 900 €", "900 bis 1.300 €", "mehr als 1.300 €"],
    ["none", "1 or 2", "3 or more"],
    ["keine", "1", "2 und mehr"],
    ["0 cigarettes", "2 cigarettes", "10 cigarettes"],
    ["Never", "never", "always"],
]  # fmt: skip
BY_CHARACTER = [
    ["a", "b", "c"],
    ["1a", "1b", "2"],
    ["2024-01-31 x", "31.1.2024"],
    ["often", "red"],
    ["frequently", "often"],  # one level
    ["no", "yes"],
    ["disagree", "unknown"],
]


@pytest.mark.parametrize("texts", [*ASCENDING, *BY_CHARACTER], ids=lambda texts: texts[-1])
def test_texts_are_in_their_natural_order_whatever_their_order_in_the_data(texts):
    for given_order in itertools.islice(itertools.permutations(texts), 200):
        assert in_order(given_order) == texts
    assert in_order(reversed(texts)) == texts


def test_other_texts_are_in_the_order_of_their_characters():
    for texts in BY_CHARACTER:
        assert in_order(texts) == sorted(texts)
    assert [t for t in ASCENDING if sorted(t) == t] != ASCENDING


@given(st.sets(st.one_of(st.text(max_size=5), st.sampled_from(sorted({*SCALES[0], *NO_ANSWER})))))
def test_the_order_has_each_text_once(texts):
    assert sorted(in_order(texts)) == sorted(texts)
    assert in_order(texts) == in_order(sorted(texts, reverse=True))


def states_of(texts, **how):
    columns = {"q": TextColumn.of(texts), "y": TextColumn.of("01" * (len(texts) // 2))}
    return SiteData.from_text("s", columns, Encoding(**how)).variables["q"].states


def test_states_of_a_scale_are_in_its_order_and_those_declared_in_theirs():
    texts = ["often", "never", "sometimes", "always"] * 3
    assert states_of(texts) == ("never", "sometimes", "often", "always")
    declared = ("always", "often", "sometimes", "never")
    assert states_of(texts, states={"q": declared}) == declared


def test_spellings_that_are_one_state_keep_the_order_of_the_scale():
    texts = ["often", "never", "Never", "sometimes", "NEVER", "never"] * 2
    assert states_of(texts, ignore_case=["q"]) == ("never", "sometimes", "often")


def test_rare_states_that_become_one_follow_the_scale():
    texts = ["often"] * 5 + ["never"] * 5 + ["sometimes"] * 2 + ["always"] * 4
    assert states_of(texts, fewest=5) == ("never", "often", "other")
