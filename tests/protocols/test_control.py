"""What a channel says of an error to the other parties."""

import pytest

from vertibayes_mpc.errors import (
    ImpossibleTablesError,
    MalformedMessageError,
    PartyGoneError,
    UnknownFaultyPartyError,
)
from vertibayes_protocols import wire
from vertibayes_protocols.transports.control import Abort


@pytest.mark.parametrize(
    ("error", "party"),
    [
        (MalformedMessageError("a", "x"), "a"),
        (UnknownFaultyPartyError(["a", "b"], "x"), "a, b"),
        (PartyGoneError(("a", "b"), "x"), "a, b"),
        (ImpossibleTablesError(["a", "b"], "d"), "a, b or d"),
        (ValueError("x"), "me"),
    ],
)
def test_an_abort_names_the_parties_of_its_error_in_one_text(error, party):
    abort = Abort.of(error, "me")
    assert abort.party == party and party.encode() in bytes(wire.encode(abort))
