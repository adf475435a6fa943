"""Predictions over sites: what parties refuse, count and note, and who is blamed for what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import committed, data_of, packets, refusal, sealed
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.odds import Odds, OddsTable
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Predict
from vertibayes_protocols.queries.predictions.predict import OddsNumbers
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.variables import Rows

DATA = data_of(a="xy", b="z", c="w")
STATES = "low", "high"


def table(names, factor=1):
    """A table that has another number for each joint value."""
    values = np.arange(3 ** len(names)) * factor
    return OddsTable(tuple(names), values.reshape([3] * len(names) + [1]))


def odds(*names, target="t", states=STATES, bits=0):
    return Odds(target, states, tuple(table(each) for each in names), bits)


def opened(**options):
    federation, _ = committed(DATA, **{"policy": ALLOW_ALL, **options})
    return federation, OpenStudy(federation.session, federation.session.role.joined, 8)


def predict(study, asked, rows=Rows()):
    return study.ask(lambda joined: Predict.of(joined, asked, rows))


def values(*names):
    """The joint codes of variables, as the rows of `table`."""
    codes = {name: c for site in DATA.values() for name, c in site.codes.items()}
    return np.ravel_multi_index([codes[name] for name in names], [3] * len(names))


def test_the_sums_of_rows_are_the_log_odds():
    federation, study = opened()
    asked = odds("xz", "w", "y", "zxw", bits=2)
    log_odds = predict(study, asked)
    expected = values(*"xz") + values("w") + values("y") + values(*"zxw")
    assert log_odds.tolist() == (expected[:, None] / 4).tolist()
    some = predict(study, asked, Rows(5, 0, 7))
    selection = federation.roles["a"].joined.selection(Rows(5, 0, 7))
    assert some.tolist() == log_odds[selection.indices].tolist()


def test_tables_of_one_site_need_no_dealer():
    federation, study = opened()
    query = Predict.of(study.joined, odds("xy", "z"), Rows())
    assert query.parties == ("a", "b")
    assert predict(study, odds("xy"))[:, 0].tolist() == values(*"xy").tolist()
    assert DEALER not in {fact.to for fact in federation.session.role.ledger.facts}


# ---- what the outputs show, and the budget -------------------------------------------------------


def test_an_analyst_reads_the_values_off_chosen_tables_and_the_budget_limits_the_records():
    """The attack of `Predict`'s leakage: a table that copies the evidence."""
    federation, study = opened(policy=replace(ALLOW_ALL, most_scores=50))
    copied = predict(study, odds("xzw"), Rows())[:, 0].astype(int)
    assert copied.tolist() == values(*"xzw").tolist(), "all values of all 40 records"
    reason = refusal(federation, Predict.of(study.joined, odds("x"), Rows()))
    assert "log odds of 40 records: 10 are left of most_scores = 50" in reason
    assert len(predict(study, odds("x"), Rows(0, 0, 10))) == 10
    assert "0 are left" in refusal(federation, Predict.of(study.joined, odds("x"), Rows(0, 0, 1)))
    assert federation.roles["c"].memory.scored == 40, "a site whose values are not named"


# ---- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "it has not committed to this study": {"study": b"another"},
    "the query asks other parties": {"parties": ("a", "b", "c", DEALER)},
    "no records are predicted": {"rows": Rows(0, 3, 3)},
    "does not lie within 40 records": {"rows": Rows(last=41)},
    "the study has no variable 'q'": {"tables": (("x", "q"),)},
    "one axis or more, each once": {"tables": (("x", "x"),)},
}


@pytest.mark.parametrize(("reason", "changes"), REFUSED.items())
def test_a_site_and_the_dealer_refuse(reason, changes):
    federation, study = opened()
    asked = Predict.of(study.joined, odds("xz"), Rows())
    if "tables" in changes:
        changes = {"odds": replace(asked.odds, **changes)}
    query = replace(asked, **changes)
    with pytest.raises(QueryRefusedError) as caught:
        consider(federation.roles["b"], query)
    assert caught.value.site == "b" and reason in caught.value.reason
    dealer = DealerRole(DEALER, federation.roles["a"].keys, {}, ALLOW_ALL)
    dealer.joined = federation.roles["a"].joined
    with pytest.raises(QueryRefusedError) as caught:
        consider(dealer, query)
    assert caught.value.site == DEALER and reason in caught.value.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"states": ("low", "high", "high")}, "two states or more, each once"),
        ({"states": ("low", "mid", "high")}, "each of 2 columns"),
        ({"tables": ()}, "one table or more"),
        ({"tables": (table("x", 2**60), table("x", 2**60))}, "must stay below"),
        ({"fraction_bits": -1}, "fraction_bits"),
    ],
)
def test_odds_that_do_not_fit_are_refused(change, reason):
    with pytest.raises(ValueError, match=reason):
        replace(odds("x"), **change)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tables": (("x",), ())}, "each with an axis"),
        ({"tables": ()}, "must have tables"),
        ({"target": "x"}, "the target 'x' cannot be a variable"),
        ({"states": ("low",)}, "two states or more"),
        ({"fraction_bits": 41}, "fraction_bits must be from 0 to 40"),
    ],
)
def test_a_shape_that_is_not_valid_makes_no_query(change, reason):
    with pytest.raises(ValueError, match=reason):
        replace(odds("xz").shape, **change)


def test_a_table_of_other_codes_is_refused_by_the_analyst():
    _, study = opened()
    wrong = Odds("t", STATES, (OddsTable(("x",), np.zeros((4, 1), np.int64)),), 0)
    with pytest.raises(ValueError, match=r"the table of x must have the codes \(3,\), got \(4,\)"):
        predict(study, wrong)


# ---- what the analyst does wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (np.zeros(8, np.int64), "expected are 9"),
        (np.zeros(9), "an array of float64, expected int64"),
        (np.zeros(9, np.int64), "not those of its query"),
    ],
)
def test_numbers_that_are_not_those_of_the_query_end_the_session(monkeypatch, numbers, reason):
    def change(sent, packet):
        is_it = isinstance(sent.message, OddsNumbers) and sent.receiver == "b"
        return sealed(packet, OddsNumbers(numbers)) if is_it else packet

    with packets(monkeypatch, change):
        _, study = opened()
        with pytest.raises(MalformedMessageError, match=reason) as caught:
            predict(study, odds("xz"))
    assert caught.value.party == "analyst"
