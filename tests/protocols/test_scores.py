"""Scores of records over sites: what sites and the dealer refuse, who is blamed for what."""

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import packets, received, sealed
from tests.randomness import SeededRandomness
from tests.vertibayes.test_vdpnb import counted, short, sites_of, together, world
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes_mpc.aggregation import Ciphertexts
from vertibayes_mpc.errors import (
    MalformedMessageError,
    ProtocolError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Scores
from vertibayes_protocols.queries.columns.scores import SchemeKey, SiteTables
from vertibayes_protocols.queries.columns.scoring import Logarithms
from vertibayes_protocols.roles import AnalystRole, DealerRole
from vertibayes_protocols.session import Go
from vertibayes_protocols.variables import Variable

SPLIT, POOLED = world(n=40)
TABLES = together(counted(SPLIT, POOLED))


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Logarithms, "scheme", staticmethod(short))


def sites(**policy):
    return federate(sites_of(SPLIT, POOLED), policy=replace(ALLOW_ALL, **policy))


def scores_of(first=0, last=40, via="additive"):
    return Scores.of(AnalystRole(), SPLIT, DEALER, TABLES, (first, last), via)


def test_some_of_the_records_are_scored():
    with sites() as federation:
        joint = federation.session.ask(scores_of(5, 9))
    wanted = NaiveBayes(SPLIT.schema).fit(POOLED).predict_joint_log_proba(POOLED)[5:9]
    assert joint == pytest.approx(wanted, abs=1e-8)


# ---- what is refused -----------------------------------------------------------------------------

NAMES = ("x0", "x1", "x2")
OF_BOTH = {  # the site and the dealer refuse this
    "the query asks other parties than the holders and the dealer": {"parties": ("site-1", DEALER)},
    "expected the totals of each feature": {"via": "product"},
    "x0: no totals of its table": {"via": "product", "totals": dict.fromkeys(NAMES, (7,))},
    "no totals of its table": {"via": "product", "totals": dict.fromkeys(NAMES, (999,) * 3)},
    "bits must be one of [2048, 3072], got 32": {
        "via": "product",
        "totals": dict.fromkeys(NAMES, (1, 1, 1)),
    },
    "0 fractional bits": {"precision": 0},
}
OF_A_SITE = {
    "it holds none of the features": {
        "split": replace(SPLIT, holders={"site-0": ("x0", "x1"), "other": ("x2",)}),
    },
    "no 'x1' in the declared states": {
        "split": replace(SPLIT, features={**SPLIT.features, "x1": Variable("x1", ("a", "b"))}),
    },
    "records 0 to 41 of 40: there are no such records": {"last": 41},
}
OF_NOBODY = {  # no analyst can ask this
    "via 'paillier': it must be additive or product": {"via": "paillier"},
    "records 0 to -1: there are no such records": {"last": -1},
    "records -1 to 40: there are no such records": {"first": -1},
    "records 7 to 7: there are no such records": {"first": 7, "last": 7},
}


@pytest.mark.parametrize(("reason", "changes"), OF_NOBODY.items())
def test_what_cannot_be_makes_no_query(reason, changes):
    with pytest.raises(ValueError, match=reason):
        replace(scores_of(), **changes)
    forged = scores_of()
    for name, value in changes.items():
        object.__setattr__(forged, name, value)
    with pytest.raises(MalformedMessageError, match=reason):
        received(forged)


def test_the_tables_stay_at_the_analyst():
    query = scores_of(via="product")
    read = received(query)
    assert read == query and query.tables and not read.tables


def test_sums_and_products_that_do_not_fit_are_not_asked():
    wide = replace(SPLIT, alpha=1.5)
    with pytest.raises(ValueError, match="products are of whole numbers"):
        Scores.of(AnalystRole(), wide, DEALER, TABLES, (0, 40), "product")


@pytest.mark.parametrize(("reason", "changes"), (OF_BOTH | OF_A_SITE).items())
def test_a_site_refuses(reason, changes):
    query = replace(scores_of(), **changes)
    with sites() as federation, pytest.raises(QueryRefusedError) as caught:
        consider(federation.roles["site-1"], query)
    assert caught.value.site == "site-1"
    assert reason in caught.value.reason


@pytest.mark.parametrize(("reason", "changes"), OF_BOTH.items())
def test_the_dealer_refuses(reason, changes):
    assert reason in refusal_of_the_dealer(replace(scores_of(), **changes), SPLIT.sites)


def test_the_dealer_deals_to_sites_that_it_knows_alone():
    assert "no public key of the sites site-1" in refusal_of_the_dealer(scores_of(), ["site-0"])
    dealer = DealerRole(DEALER, KeyPair.generate(SeededRandomness()), dict.fromkeys(SPLIT.sites))
    assert consider(dealer, scores_of()).effects.leaves == (40, "scores")


def refusal_of_the_dealer(query, known):
    keys = KeyPair.generate(SeededRandomness())
    with pytest.raises(QueryRefusedError) as caught:
        consider(DealerRole(DEALER, keys, dict.fromkeys(known)), query)
    assert caught.value.site == DEALER
    return caught.value.reason


# ---- what peers do wrong -------------------------------------------------------------------------


def forging(kind, forged, receiver):
    """Deliver another message in place of those of a kind."""

    def change(sent, packet):
        is_it = isinstance(sent.message, kind) and sent.receiver == receiver
        return sealed(packet, forged) if is_it else packet

    return change


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (SiteTables(np.zeros(8, np.int64)), "tables of 9 counts"),
        (SiteTables(np.zeros((3, 3), np.int64)), "tables of 9 counts"),
        (SiteTables(np.zeros(9)), "an array of float64, expected int64"),
        (SiteTables(np.full(9, -1, np.int64)), "a count of x0 beyond that of its class"),
        (SiteTables(np.full(9, 1000, np.int64)), "a count of x0 beyond that of its class"),
        (SiteTables(np.zeros(900, np.int64)), "890 cells more than are allowed"),
        (Go(True), "where site tables is expected"),
    ],
)
def test_forged_tables_name_the_analyst(monkeypatch, forged, reason):
    with packets(monkeypatch, forging(SiteTables, forged, "site-0")), sites() as federation:
        with pytest.raises((MalformedMessageError, UnexpectedMessageError), match=reason) as error:
            federation.session.ask(scores_of())
        assert error.value.party == ANALYST


@pytest.mark.parametrize("forged", [SchemeKey(bytes(5000)), Go(True)])
@pytest.mark.parametrize("receiver", ["site-0", ANALYST])
def test_forged_keys_name_the_dealer(monkeypatch, forged, receiver):
    with packets(monkeypatch, forging(SchemeKey, forged, receiver)), sites() as federation:
        with pytest.raises((MalformedMessageError, UnexpectedMessageError)) as error:
            federation.session.ask(scores_of())
        assert error.value.party == DEALER


def test_a_key_of_another_batch_opens_nothing(monkeypatch):
    with packets(monkeypatch, forging(SchemeKey, SchemeKey.of(7), "site-0")), sites() as federation:
        with pytest.raises(UnknownFaultyPartyError, match="not 1 modulo N"):
            federation.session.ask(scores_of())


@pytest.mark.parametrize("changes", [{"split": replace(SPLIT, alpha=2.0)}, {"first": 3}])
def test_a_site_that_was_asked_something_else_is_named(monkeypatch, changes):
    query = scores_of()
    forge = forging(Scores, replace(query, **changes), "site-1")
    with packets(monkeypatch, forge), sites() as federation:
        with pytest.raises(ProtocolError, match=r"other parameters|expected 120") as error:
            federation.session.ask(query)
        assert error.value.party == "site-1"


def test_the_same_query_has_new_keys(monkeypatch):
    query = scores_of()
    with packets(monkeypatch) as seen, sites() as federation:
        assert np.array_equal(federation.session.ask(query), federation.session.ask(query))
    sent = [s.message.packets for s, _ in seen if isinstance(s.message, Ciphertexts)]
    assert len(sent) == 4 and len({packet for packets in sent for packet in packets}) == sum(
        map(len, sent)
    )
