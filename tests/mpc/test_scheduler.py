"""Parties that go: what they sent is delivered, and who needs them hears of it by name."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes_mpc.errors import PartyGoneError, ProtocolError
from vertibayes_mpc.rounds import Expect, Message, Round
from vertibayes_mpc.scheduler import ByHand, Scheduler


@dataclass(frozen=True, slots=True)
class Word(Message):
    word: str
    kind: ClassVar[str] = "test-word"


def listen(parties, need=None):
    inbox = yield Round({}, dict.fromkeys(parties, Expect(Word)), need=need)
    return {party: message.word for party, message in inbox.items()}


def say(receiver, word="a word"):
    yield Round({receiver: Word(word)}, {})


def wait_for(party):
    yield Round({}, {party: Expect(Word)})


def scheduler_of(**programs):
    scheduler = Scheduler(ByHand())
    for party, program in programs.items():
        scheduler.start(party, program)
    return scheduler


def test_what_was_sent_before_is_delivered():
    scheduler = scheduler_of(p=say("r", "last words"), q=say("r"))
    scheduler.drop("p")
    assert scheduler.run("r", listen("pq")) == {"p": "last words", "q": "a word"}


@given(st.integers(1, 6), st.integers(0, 6), st.sets(st.integers(0, 5)), st.booleans())
def test_who_has_a_need_goes_on_without_the_gone(count, need, gone, before):
    """Once all others, and at least `need`, were heard; else an error that names the gone."""
    parties = [f"p{i}" for i in range(count)]
    need, gone = min(need, count), [p for i, p in enumerate(parties) if i in gone]
    scheduler = Scheduler(ByHand())
    if before:
        scheduler.start("r", listen(parties, need))
    for party in gone:
        scheduler.start(party, wait_for("nobody"))
        scheduler.drop(party)
    for party in parties:
        if party not in gone:
            scheduler.start(party, say("r"))
    if not before:
        scheduler.start("r", listen(parties, need))
    if count - len(gone) >= need:
        assert sorted(scheduler.finish("r")) == [p for p in parties if p not in gone]
    else:
        with pytest.raises(PartyGoneError, match=f"r needs {need} of {count}") as caught:
            scheduler.finish("r")
        assert caught.value.parties == tuple(gone)


def test_the_others_are_waited_for_though_enough_were_heard():
    def slow():
        yield from wait_for("q")
        yield from say("r", "late, but there")

    scheduler = scheduler_of(p=slow(), r=listen("pq", 1), q=say("p"))
    scheduler.start("s", wait_for("nobody"))
    scheduler.drop("s")
    scheduler.drop("q")  # after its word to p
    assert scheduler.finish("r") == {"p": "late, but there"}


def test_the_error_comes_at_once_and_to_the_program_that_waits():
    def careful():
        try:
            yield from listen("pq")
        except PartyGoneError as error:
            return error.parties

    scheduler = scheduler_of(p=wait_for("nobody"), q=wait_for("nobody"), r=careful())
    scheduler.drop("p")
    assert scheduler.finish("r") == ("p",)  # though q says nothing either


def test_messages_to_the_gone_hold_nobody_up():
    def two_words():
        yield Round({"p": Word("unread"), "r": Word("one")}, {})
        yield Round({"p": Word("lost"), "r": Word("two")}, {})

    scheduler = scheduler_of(p=wait_for("nobody"), q=two_words())
    assert scheduler.run("r", listen("q")) == {"q": "one"}
    scheduler.drop("p")
    assert scheduler.run("r", listen("q")) == {"q": "two"}
    lost = [sent.message.word for sent in scheduler.carrier.transcript if sent.receiver == "p"]
    assert lost == ["unread"]


def test_the_gone_can_come_back():
    scheduler = scheduler_of(p=wait_for("q"))
    scheduler.drop("p")
    with pytest.raises(PartyGoneError, match="p: gone; q needs 1 of 1"):
        scheduler.run("q", wait_for("p"))
    scheduler.start("p", say("q"))
    scheduler.run("q", wait_for("p"))
    scheduler.finish("p")


def test_a_dropped_party_itself_is_no_result():
    scheduler = scheduler_of(p=wait_for("q"))
    scheduler.drop("p")
    with pytest.raises(PartyGoneError, match="p: gone before its program ended"):
        scheduler.finish("p")


def test_a_party_that_does_not_go_on_is_named_without_those_that_were_heard():
    scheduler = scheduler_of(p=say("r"), q=wait_for("r"))
    with pytest.raises(ProtocolError, match="q: does not go on; r waits"):
        scheduler.run("r", listen("pq"))


def test_who_refused_a_message_can_be_sent_another():
    @dataclass(frozen=True, slots=True)
    class Other(Message):
        kind: ClassVar[str] = "test-other"

    def wrong_then_right():
        yield Round({"r": Other()}, {})
        yield Round({"r": Word("right")}, {})

    scheduler = scheduler_of(r=listen("p"))
    with pytest.raises(ProtocolError, match="sent Other where Word was expected"):
        scheduler.run("p", wrong_then_right())
    assert scheduler.finish("r") == {"p": "right"}


def test_a_thousand_parties_cost_steps_in_proportion():
    """The scheduler looks at each message a few times, however many parties wait."""
    looked = 0

    class Counted(dict):
        def get(self, *args):
            nonlocal looked
            looked += 1
            return super().get(*args)

    def answers(times):
        for _ in range(times):
            yield Round({"r": Word("here")}, {"r": Expect(Word)})

    def asks(parties, times):
        for _ in range(times):
            yield Round(dict.fromkeys(parties, Word("now")), dict.fromkeys(parties, Expect(Word)))

    parties, times = [f"p{i}" for i in range(1000)], 5
    scheduler = Scheduler(ByHand())
    scheduler._mail = Counted()
    for party in parties:
        scheduler.start(party, answers(times))
    scheduler.run("r", asks(parties, times))
    assert len(scheduler.carrier.transcript) == 2 * times * len(parties)
    assert looked < 4 * len(scheduler.carrier.transcript)
