"""A site that sends one receiver other columns, ids, secrets or keys than the others.

The liar's program is honest except for what it puts into its outbox: b lies to a. Sites and dealer
compare digests of what they received; without the comparison b counts two columns as one.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from tests.protocols.network import Parties
from tests.protocols.small import (
    committed,
    count,
    data_of,
    packets,
    plain,
    sealed,
    seeded,
    study_of,
)
from tests.worlds import put_together, taken_apart
from vertibayes_mpc.commitments import CodeColumn
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import (
    MalformedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.rounds import exchange
from vertibayes_protocols.errors import PeerAbortedError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.queries import Commit
from vertibayes_protocols.queries.opening import commit
from vertibayes_protocols.queries.opening.commit import Joining, commitments_of
from vertibayes_protocols.queries.opening.comparing import Received

committing = import_module(
    "vertibayes_mpc.commitments.commit"
)  # the package has a function of this name
DATA = data_of(b="z", a="x", c="w")
STUDY = study_of(DATA)
FORMS = commitments_of(STUDY, {name: [name.encode()] for name in STUDY.variables}, b"")
SHOWN = DATA["b"].codes["z"]
OTHER = (SHOWN + np.arange(40, dtype=np.uint8) % 2 + 1) % 3  # what a receives in the place of z


def lie(monkeypatch, module, change, victims=("a",), liar="b"):
    """Have the liar send its victims a changed message; outboxes of others stay as they are."""

    def lying(outbox, expect, **options):
        peers = {*DATA, DEALER} - set(outbox)
        if peers & set(DATA) == {liar}:
            outbox = {p: change(m) if p in victims else m for p, m in outbox.items()}
        return exchange(outbox, expect, **options)

    monkeypatch.setattr(module, "exchange", lying)


def other_columns():
    """Return a change of messages with z to messages with the other column under the same mask."""
    blocks = iter(range(3))

    def change(message):
        assert isinstance(message, Columns)
        rows = slice(16 * (at := next(blocks)), 16 * (at + 1))
        columns = taken_apart(FORMS, "b", message.values)
        for form, place in FORMS.forms_held_by("b"):
            step = form.of(OTHER[rows]) - form.of(SHOWN[rows])
            key = form.name, place
            columns[key] = form.ring.reduce(columns[key] + step)
        return replace(message, values=put_together(FORMS, "b", columns))

    return change


def no_comparison(monkeypatch):
    monkeypatch.setattr(commit, "compare", lambda *_: iter(()))


def counts_of_two_columns(federation, study, data, names):
    """Whether z is counted as the other column with x, and as z with w: b is asked in turn."""
    right = []
    for name in names:
        codes = OTHER if name == "x" else SHOWN
        federation.roles["b"].holder.columns[study.place("z")] = CodeColumn(codes)
        (table,) = count(federation, study, (name, "z"))
        told = {**data, "b": replace(data["b"], codes={"z": codes})}
        right.append(np.array_equal(table, plain(told, name, "z")))
    return all(right) and (OTHER != SHOWN).all()


# ---- masked columns ------------------------------------------------------------------------------


def test_without_the_comparison_a_site_counts_two_columns_as_one(monkeypatch):
    """The control: z is counted with w, and the other column, which b never showed, with x."""
    no_comparison(monkeypatch)
    lie(monkeypatch, committing, other_columns())
    federation, study = committed(DATA, STUDY)
    assert counts_of_two_columns(federation, study, DATA, "xw")


def test_a_site_that_sends_a_receiver_another_column_is_named_with_both_receivers(monkeypatch):
    lie(monkeypatch, committing, other_columns())
    with pytest.raises(UnknownFaultyPartyError, match="that b sent to a and to c differ") as caught:
        committed(DATA, STUDY)
    assert caught.value.parties == ("b", "a", "c")


def test_every_party_learns_who_sent_different_columns(monkeypatch):
    lie(monkeypatch, committing, other_columns())
    with Parties(DATA) as parties, parties.session() as session:
        with pytest.raises(PeerAbortedError, match="b sent to a and to c differ, or one of them l"):
            open_study(session, tuple(DATA), DEALER, block_rows=16)
        errors = parties.errors(*DATA, DEALER)
    assert all("that b sent to a and to c differ" in str(errors[p]) for p in (*DATA, DEALER))
    assert any(isinstance(errors[p], UnknownFaultyPartyError) for p in "ac")


def test_one_changed_byte_of_the_last_block_is_noticed(monkeypatch):
    sizes = []

    def change(message):
        sizes.append(message.values.size)
        values = message.values.copy()
        values[-1] ^= len(sizes) == 3
        return replace(message, values=values)

    lie(monkeypatch, committing, change, victims=("c",))
    with pytest.raises(UnknownFaultyPartyError, match="masked columns") as caught:
        committed(DATA, STUDY)
    assert caught.value.parties == ("b", "a", "c") and len(sizes) == 3


def test_the_columns_of_two_sites_have_one_receiver_each_and_are_compared_with_nothing(monkeypatch):
    pair = {site: DATA[site] for site in "ba"}
    monkeypatch.setattr("tests.privacy.test_equivocation.DATA", pair)
    forms = commitments_of(study_of(pair), {n: [n.encode()] for n in "zx"}, b"")
    monkeypatch.setattr("tests.privacy.test_equivocation.FORMS", forms)
    lie(monkeypatch, committing, other_columns())
    federation, study = committed(pair, study_of(pair))
    assert counts_of_two_columns(federation, study, pair, "x")


# ---- ids, secrets, keys --------------------------------------------------------------------------


LIES = {
    "ids": lambda m: replace(m, ids=(bytes(16),)),
    "seed": lambda m: replace(m, seed=bytes(32)),
    "key": lambda m: replace(m, key=bytes([9]) + bytes(31)),
}


@pytest.mark.parametrize("part", [*LIES, "order"])
@pytest.mark.parametrize("victim", ["a", "c", DEALER])
def test_different_first_messages_name_their_sender_and_both_receivers(monkeypatch, part, victim):
    change = LIES.get(part, lambda m: replace(m, order=bytes(len(m.order))))
    lie(monkeypatch, commit, change, victims=(victim,))
    if (part, victim) == ("order", DEALER):  # the dealer's part of it is empty
        assert committed(DATA, STUDY)
        return
    with pytest.raises(UnknownFaultyPartyError, match=r"that b sent to .* differ") as caught:
        committed(DATA, STUDY)
    sender, *receivers = caught.value.parties
    assert sender == "b" and victim in receivers and len(set(receivers)) == 2


def test_a_dealer_that_sends_sites_different_keys_is_named(monkeypatch):
    def change(sent, packet):
        lies = (sent.sender, sent.receiver) == (DEALER, "a") and isinstance(sent.message, Joining)
        return sealed(packet, LIES["key"](sent.message)) if lies else packet

    with packets(monkeypatch, change):
        federation = seeded(DATA)
    with pytest.raises(UnknownFaultyPartyError, match="that dealer sent to a and to ") as caught:
        federation.session.ask(Commit.of(STUDY))
    assert caught.value.parties[0] == DEALER and "a" in caught.value.parties


def test_without_the_comparison_an_honest_site_is_blamed_for_different_ids(monkeypatch):
    """The control: labels of columns depend on the ids, so that honest columns look foreign."""
    no_comparison(monkeypatch)
    lie(monkeypatch, commit, LIES["ids"])
    with pytest.raises(UnexpectedMessageError, match="Columns of another query") as caught:
        committed(DATA, STUDY)
    assert caught.value.party in "ac"


def test_the_first_messages_of_two_sites_are_compared_with_the_dealer(monkeypatch):
    pair = {site: DATA[site] for site in "ba"}
    monkeypatch.setattr("tests.privacy.test_equivocation.DATA", pair)
    lie(monkeypatch, commit, LIES["ids"])
    with pytest.raises(UnknownFaultyPartyError) as caught:
        committed(pair, study_of(pair))
    assert caught.value.parties == ("b", "a", DEALER)


# ---- digests -------------------------------------------------------------------------------------


def reported(change):
    """Return a change of the digests that c sends to a."""

    def changed(sent, packet):
        lies = (sent.sender, sent.receiver) == ("c", "a") and isinstance(sent.message, Received)
        return sealed(packet, Received(change(sent.message.digests))) if lies else packet

    return changed


def test_a_receiver_that_reports_another_digest_is_one_of_three_who_may_lie(monkeypatch):
    with packets(monkeypatch, reported(lambda d: tuple(x and bytes(32) for x in d))):
        federation = seeded(DATA)
    with pytest.raises(UnknownFaultyPartyError, match="or one of them lies") as caught:
        federation.session.ask(Commit.of(STUDY))
    assert caught.value.parties == ("b", "a", "c")


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: (*d[:-1], bytes(31)), lambda _: ()])
def test_digests_of_a_wrong_number_or_length_name_their_sender(monkeypatch, change):
    with packets(monkeypatch, reported(change)):
        federation = seeded(DATA)
    with pytest.raises(MalformedMessageError, match="digests have a wrong number") as caught:
        federation.session.ask(Commit.of(STUDY))
    assert caught.value.party == "c"
