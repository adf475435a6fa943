"""Score tables: equal to the counts in the clear, by each rule; what parties refuse and charge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.small import committed, data_of, refusal
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.odds import Odds, OddsTable
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries.predictions import score_table
from vertibayes_protocols.queries.predictions.score_table import ScoreTable
from vertibayes_protocols.release import Rule
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Rows, Variable

EXACT = Rule("exact")
GENERATOR = np.random.default_rng(3)
CLASSES = GENERATOR.integers(0, 3, 40).astype(np.uint8)
NUMBERS = {names: GENERATOR.integers(-50, 50, 3 ** len(names)) for names in ("xz", "y", "zw")}
THRESHOLDS = np.array([-60, -20, 0, 1, 30, 31, 70])


def sites(holder="d", classes=CLASSES):
    """Sites with features, and a class, of which values are missing, at one of them."""
    data = data_of(a="xy", b="z", c="w")
    variable = Variable("t", ("low", "high"), missing=True)
    variables, codes = {"t": variable}, {"t": classes}
    if holder in data:
        variables, codes = data[holder].variables | variables, {**data[holder].codes, **codes}
    data[holder] = SiteData(variables, codes)
    return data


def odds(*names):
    tables = (OddsTable(tuple(n), NUMBERS[n].reshape([3] * len(n) + [1])) for n in names)
    return Odds("t", ("low", "high"), tuple(tables), 0)


def opened(data, **options):
    federation, _ = committed(data, **{"policy": ALLOW_ALL, **options})
    return federation, OpenStudy(federation.session, federation.session.role.joined, 8)


def in_the_clear(data, names, places=slice(None)):
    codes = {name: c for site in data.values() for name, c in site.codes.items()}
    scores = sum(
        NUMBERS[n][np.ravel_multi_index([codes[name] for name in n], [3] * len(n))] for n in names
    )
    table = np.zeros((len(THRESHOLDS) + 1, 3), np.int64)
    bins = np.searchsorted(THRESHOLDS, scores, side="right")
    np.add.at(table, (bins[places], codes["t"][places]), 1)
    return table


def query_of(study, names=("xz", "y"), rule=EXACT, thresholds=THRESHOLDS, rows=Rows()):
    return ScoreTable.of(study.joined, odds(*names), rows, thresholds=thresholds, rule=rule)


def table_of(study, names, rule, rows=Rows()):
    return study.ask(lambda _: query_of(study, names, rule, rows=rows))


@pytest.mark.parametrize("holder", ["a", "c", "d"])
@pytest.mark.parametrize("names", [("xz", "y", "zw"), ("y",)])
def test_the_table_is_that_of_the_joined_records(holder, names, monkeypatch):
    monkeypatch.setattr(score_table, "RANKED_TOGETHER", 16)
    data = sites(holder)
    federation, study = opened(data)
    table = table_of(study, names, EXACT)
    assert table.tolist() == in_the_clear(data, names).tolist()
    cut = table_of(study, names, Rule("cut", 3))
    assert cut.tolist() == np.where(table < 3, 0, table).tolist()
    rows = Rows(2, 5, 30)
    some = table_of(study, names, EXACT, rows)
    places = federation.roles["a"].joined.selection(rows).indices
    assert some.tolist() == in_the_clear(data, names, places).tolist()


def test_noise_is_added_and_charged():
    federation, study = opened(sites(), policy=replace(ALLOW_ALL, most_epsilon=500.0))
    table = table_of(study, ["xz"], Rule("laplace", epsilon=0.5))
    exact = in_the_clear(sites(), ["xz"])
    assert (table != exact).any() and np.abs(table - exact).max() < 100
    assert federation.roles["d"].memory.spent.eps == 0.5
    near = table_of(study, ["xz"], Rule("laplace", epsilon=300.0))
    assert near.tolist() == exact.tolist()
    dear = query_of(study, rule=Rule("laplace", epsilon=250.0))
    assert "left of most_epsilon = 500" in refusal(federation, dear)


def test_what_leaves_is_in_the_ledgers_and_the_budgets():
    federation, study = opened(sites(), policy=replace(ALLOW_ALL, most_released_tables=1))
    table_of(study, ["xz"], Rule("cut", 3))
    what = "counts of 40 records by t and 8 bins of its log odds from x, z: counts below 3 as 0"
    for ledger in (federation.session.role.ledger, federation.roles["d"].ledger):
        facts = {fact.what: (fact.about, fact.to) for fact in ledger.facts}
        assert facts[what] == ("a, b, d", ("analyst",))
    assert "most_released_tables = 1" in refusal(federation, query_of(study, ("xz",)))
    assert federation.roles["c"].memory.released.tables == 0, "a site without a named variable"
    assert federation.roles["a"].memory.scored == 0, "no log odds of a record leave"


REFUSED = {
    "no site of the study holds the target 'q'": {"target": "q"},
    "the target 'w' has 3 states; a score table needs two states": {"target": "w"},
    "with these two states": {"states": ("high", "low")},
    "the query asks other parties": {"parties": ("a", "b", DEALER)},
    "no records are predicted": {"rows": Rows(0, 3, 3)},
}


@pytest.mark.parametrize(("reason", "changes"), REFUSED.items())
def test_a_site_and_the_dealer_refuse(reason, changes):
    federation, study = opened(sites())
    asked = query_of(study)
    shape = {name: changes[name] for name in ("target", "states") if name in changes}
    rest = {name: value for name, value in changes.items() if name not in shape}
    query = replace(asked, odds=replace(asked.odds, **shape), **rest)
    dealer = DealerRole(DEALER, federation.roles["a"].keys, {}, ALLOW_ALL)
    dealer.joined = federation.roles["a"].joined
    for role in (federation.roles["b"], dealer):
        with pytest.raises(QueryRefusedError) as caught:
            consider(role, query)
        assert caught.value.site == role.party and reason in caught.value.reason


@pytest.mark.parametrize(
    ("reason", "thresholds"),
    {
        "thresholds must be from 1 to 255": np.zeros(0, np.int64),
        "255, ascending": np.array([3, 3]),
        "whole numbers": np.zeros(3),
        "below 2\\*\\*62": np.array([2**62]),
    }.items(),
)
def test_thresholds_that_are_not_valid_make_no_query(reason, thresholds):
    _, study = opened(sites())
    with pytest.raises(ValueError, match=reason):
        query_of(study, thresholds=thresholds)


def test_a_table_that_does_not_count_all_records_ends_the_run(monkeypatch):
    _, study = opened(sites())
    drawn = score_table._by_the_rule

    def lying(site, plan, counts, randomness):
        values = yield from drawn(site, plan, counts, randomness)
        return values + values.dtype.type(site.party == "b")

    monkeypatch.setattr(score_table, "_by_the_rule", lying)
    with pytest.raises(ImpossibleTablesError, match="a table that no records have"):
        table_of(study, ["xz"], EXACT)
