"""What an error says of parties, as data."""

import pickle

import pytest

from vertibayes_mpc.errors import (
    FaultyPartyError,
    ImpossibleTablesError,
    MalformedMessageError,
    PartyGoneError,
    ProtocolError,
    ReplayedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)


@pytest.mark.parametrize(
    "cls",
    [FaultyPartyError, MalformedMessageError, UnexpectedMessageError, ReplayedMessageError],
)
def test_an_error_that_proves_a_fault_names_one_party(cls):
    error = cls("a", "sent nothing that fits")
    assert isinstance(error, FaultyPartyError) and not isinstance(error, UnknownFaultyPartyError)
    assert (error.party, error.parties) == ("a", ("a",))
    assert str(error) == "a: sent nothing that fits"


@pytest.mark.parametrize(
    ("error", "parties", "text"),
    [
        (UnknownFaultyPartyError(["a", "b"], "x"), ("a", "b"), "a, b: x"),
        (UnknownFaultyPartyError("ab", "x"), ("a", "b"), "a, b: x"),
        (PartyGoneError(("a", "b"), "x"), ("a", "b"), "a, b: x"),
        (PartyGoneError("ab", "x"), ("ab",), "ab: x"),
        (ProtocolError("ab", "x"), ("ab",), "ab: x"),
    ],
)
def test_an_error_of_several_parties_blames_none_of_them_alone(error, parties, text):
    assert error.parties == parties and str(error) == text
    assert not isinstance(error, FaultyPartyError) and not hasattr(error, "party")


def test_impossible_tables_are_the_fault_of_a_site_or_the_dealer():
    error = ImpossibleTablesError(["a", "b"], "d")
    assert isinstance(error, UnknownFaultyPartyError) and error.parties == ("a", "b", "d")
    assert str(error) == "a, b or d: a table that no records have: one of them lies"


@pytest.mark.parametrize(
    "error",
    [MalformedMessageError("a", "x"), UnknownFaultyPartyError("ab", "x"), PartyGoneError("a", "x")],
)
def test_an_error_names_the_same_parties_in_another_process(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.parties, str(copy)) == (type(error), error.parties, str(error))
