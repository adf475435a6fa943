"""Releases: each rule's tables, the budget, the check of sums, and what sites refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.network import Parties
from tests.protocols.small import (
    committed,
    data_of,
    packets,
    plain,
    refusal,
    sealed,
    study_of,
)
from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.lookups import cut, rounded
from vertibayes_mpc.noise import PolyaShare
from vertibayes_protocols.budget import Cost, rho_of
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.gaussian import scale_of
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.policy import FREE, Policy
from vertibayes_protocols.queries import Commit
from vertibayes_protocols.queries.releases.plan import ReleaseNoise
from vertibayes_protocols.queries.releases.release import FAILED, Release, TableSums
from vertibayes_protocols.query import At
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.study import Joined
from vertibayes_protocols.variables import Family, Variable

DATA = data_of(a="xy", b="z", c="w")
STUDY = study_of(DATA)
NAMES = "xz", "w", "xy", "wxz", "zx", "y"
FAMILIES = tuple(Family(names[0], tuple(names[1:])) for names in NAMES)
EXACT = [plain(DATA, *names) for names in NAMES]
GENEROUS = Policy(free_tables=True, most_epsilon=1000.0)


def release(rule, families=FAMILIES, data=DATA, study=None, **options):
    """Release tables; return the federation and the tables."""
    federation, study = committed(data, study, policy=GENEROUS, **options)
    opened = OpenStudy(federation.session, federation.session.role.joined, 8)
    tables = opened.release(FamilyTables(families, False, rule))
    return federation, tables


# ---- tables --------------------------------------------------------------------------------------


def test_exact_tables_are_those_of_the_sites_data():
    federation, tables = release(Rule("exact"))
    assert all(map(np.array_equal, tables, EXACT))
    assert federation.roles["a"].memory.spent == Cost()


@pytest.mark.parametrize("fewest", [2, 4, 10, 41])
def test_a_cut_table_has_no_cell_below_the_threshold(fewest):
    _, tables = release(Rule("cut", fewest=fewest))
    for table, exact in zip(tables, EXACT, strict=True):
        assert np.array_equal(table, np.where(exact < fewest, 0, exact))
        assert not ((table > 0) & (table < fewest)).any()


@pytest.mark.parametrize("fewest", [2, 4, 7, 10, 40])
def test_a_rounded_table_has_multiples_of_the_base(fewest):
    _, tables = release(Rule("rounded", fewest=fewest))
    for table, exact in zip(tables, EXACT, strict=True):
        assert np.array_equal(table, rounded(fewest, 40)(exact))
        assert not (table % fewest).any() and (abs(table - exact) <= fewest / 2 + 2).all()


def test_a_multiple_that_exceeds_the_ring_of_counts_is_read_as_it_is():
    """65,530 records have shares of 16 bits, and 65,530 rounds to 66,000."""
    names, records = ("x", "z"), 65_530
    data = {
        site: SiteData({n: Variable(n, ("no", "yes"))}, {n: np.zeros(records, np.uint8)})
        for site, n in zip("ab", names, strict=True)
    }
    study = study_of(data, block_rows=1 << 15, memory=1 << 26)
    _, (table,) = release(Rule("rounded", fewest=1000), (Family("x", ("z",)),), data, study)
    assert table.tolist() == [[66_000, 0], [0, 0]]


@pytest.mark.parametrize("kind", ["exact", "cut", "rounded"])
def test_one_site_releases_alone(kind):
    data, rule = data_of(a="xyzw"), Rule(kind, fewest=3)
    _, tables = release(rule, FAMILIES, data)
    of_count = {"exact": np.array, "cut": cut(3, 40), "rounded": rounded(3, 40)}[kind]
    for family, table in zip(FAMILIES, tables, strict=True):
        assert np.array_equal(table, of_count(plain(data, *family.members)))


def test_tables_of_wide_columns_are_released_exactly_in_both_ways():
    """The wide column is shuffled, the others are multiplied."""
    study = study_of(DATA, most_indicators=2)
    data = dict(DATA)
    wide = Variable("w", tuple("0123456789"))
    data["c"] = SiteData({"w": wide}, {"w": DATA["c"].codes["w"]})
    study = replace(study, variables={**study.variables, "w": wide})
    _, tables = release(Rule("exact"), data=data, study=study)
    for names, table in zip(NAMES, tables, strict=True):
        shown = tuple(slice(3) if name == "w" else slice(None) for name in names)
        assert np.array_equal(table[shown], plain(DATA, *names)) and table.sum() == 40
    with pytest.raises(ValueError, match=r"cannot be released by the rule cut; the rule exact can"):
        release(Rule("cut"), data=data, study=study)


def test_missing_values_drop_records_or_are_a_state():
    codes = np.array([0, 1, 2, 2, 1] * 8, np.uint8), np.array([0, 1] * 20, np.uint8)
    variables = Variable("x", ("no", "yes"), missing=True), Variable("z", ("no", "yes"))
    data = {
        site: SiteData({v.name: v}, {v.name: column})
        for site, v, column in zip("ab", variables, codes, strict=True)
    }
    federation, _ = committed(data)
    for missing in (False, True):
        asked = FamilyTables((Family("z", ("x",)),), missing, Rule("cut", fewest=9))
        (table,) = federation.session.ask(Release.of(federation.session.role.joined, asked))
        exact = np.zeros((2, 3), np.int64)
        np.add.at(exact, (codes[1], codes[0]), 1)
        exact = exact if missing else exact[:, :2]
        assert np.array_equal(table, np.where(exact < 9, 0, exact))


# ---- noise ---------------------------------------------------------------------------------------


def many_cells(records=40, seed=3):
    """Return sites with columns whose tables have 512 cells."""
    generator = np.random.default_rng(seed)
    states = tuple("01234567")
    return {
        site: SiteData(
            {name: Variable(name, states)},
            {name: generator.integers(0, 8, records).astype(np.uint8)},
        )
        for site, name in zip("abc", "xyz", strict=True)
    }


WIDE = Family("x", ("y", "z")), Family("z", ("y", "x"))  # 1024 cells


@pytest.mark.parametrize("rule", [
    Rule("laplace", epsilon=1.0),
    Rule("laplace", epsilon=1.0, dishonest=0.5),
    Rule("gaussian", epsilon=1.0),
    Rule("gaussian", epsilon=1.0, dishonest=0.4),
])  # fmt: skip
def test_noise_has_the_mean_and_the_variance_that_the_rule_promises(rule):
    if rule.kind == "gaussian":
        pytest.importorskip("opendp")
    data = many_cells()
    federation, tables = release(rule, WIDE, data)
    noise = np.concatenate([
        (table - exact).ravel()
        for table, exact in zip(tables, (exact_of(data, f) for f in WIDE), strict=True)
    ])  # fmt: skip
    promised = ReleaseNoise(FamilyTables(WIDE, False, rule), 3)
    variance = 3 * promised.of_a_site().variance
    assert abs(noise.mean()) < 4 * np.sqrt(variance / noise.size)
    assert 0.6 < noise.var() / variance < 1.5
    assert all(r.memory.spent == promised.cost for r in federation.roles.values())


def exact_of(data, family):
    codes = {name: column for site in data.values() for name, column in site.codes.items()}
    table = np.zeros((8, 8, 8), np.int64)
    np.add.at(table, tuple(codes[name] for name in family.members), 1)
    return table


@pytest.mark.parametrize(("dishonest", "expected"), [
    (0.0, ((1, 1), (2, 2), (3, 3))),
    (0.5, ((1, 1), (2, 1), (3, 2), (5, 3))),
    (0.8, ((4, 1), (5, 1), (10, 2))),
    (1.0, ((1, 1), (2, 1), (5, 1))),
])  # fmt: skip
def test_the_honest_sites_add_a_whole_copy(dishonest, expected):
    laplace, gaussian = (
        FamilyTables(FAMILIES, False, Rule(kind, epsilon=2.0, dishonest=dishonest))
        for kind in ("laplace", "gaussian")
    )
    for sites, honest in expected:
        noise = ReleaseNoise(laplace, sites).of_a_site()
        assert noise == PolyaShare(eps=2.0, Delta=len(FAMILIES), n=honest)
        noise, scale = ReleaseNoise(gaussian, sites), scale_of(2.0, 1e-6, len(FAMILIES), honest)
        assert noise.of_a_site().scale == pytest.approx(scale, rel=1e-14)
        assert noise.of_a_site().scale >= scale, "never less than was certified"
        assert noise.cost.rho == pytest.approx(len(FAMILIES) / (2 * honest * scale**2), rel=1e-3)
        assert noise.cost.rho > rho_of(2.0, 1e-6), "what it is, and not what zCDP would need"


def test_without_a_share_the_noise_of_each_site_suffices():
    for kind in ("laplace", "gaussian"):
        assert Rule(kind).dishonest == 1 and Rule(kind).words == Rule(kind, dishonest=1.0).words
        assert "if no site works" in Rule(kind, dishonest=0.0).words
    with pytest.raises(ValueError, match=r"`dishonest` must be at least 0 and at most 1, got 1\.5"):
        Rule("laplace", dishonest=1.5)


@pytest.mark.parametrize("records", [40_000, 65_500])
def test_noise_that_leaves_the_ring_of_counts_is_read_as_it_is(records):
    """65,500 counts and noise do not fit into 16 bits: a lookup widens the ring of the shares."""
    variable = Variable("x", ("no", "yes")), Variable("z", ("no", "yes"))
    data = {
        site: SiteData({v.name: v}, {v.name: np.zeros(records, np.uint8)})
        for site, v in zip("ab", variable, strict=True)
    }
    study = study_of(data, block_rows=1 << 15, memory=1 << 26)
    families = (Family("x", ("z",)),)
    _, (table,) = release(Rule("laplace", epsilon=0.02), families, data, study)
    assert abs(table[0, 0] - records) < 5000
    assert abs(np.delete(table.ravel(), 0)).max() < 5000


# ---- the check of sums ---------------------------------------------------------------------------


def test_a_sum_that_is_not_the_record_count_ends_the_run(monkeypatch):
    """The error and the ledgers do not say which table it was."""

    def change(sent, packet):
        if isinstance(sent.message, TableSums) and sent.sender == "b" and sent.receiver == "a":
            values = sent.message.values.copy()
            values[1] += 1
            return sealed(packet, replace(sent.message, values=values))
        return packet

    federation, _ = committed(DATA)
    asked = FamilyTables(FAMILIES, False, Rule("exact"))
    query = Release.of(federation.session.role.joined, asked)
    with packets(monkeypatch, change):
        federation, _ = committed(DATA)
        with pytest.raises(ImpossibleTablesError) as caught:
            federation.session.ask(query)
    assert caught.value.parties == ("a", "b", "c", DEALER)
    notes = [fact.what for fact in federation.roles["a"].ledger.facts]
    assert FAILED in notes and not any(name in FAILED.split() for name in "xyzw")


# ---- ledgers, memories, messages -----------------------------------------------------------------


def test_the_analyst_receives_nothing_but_shares_of_the_released_tables(monkeypatch):
    with packets(monkeypatch) as seen:
        release(Rule("cut", fewest=4))
    to_analyst = [sent for sent, _ in seen if sent.receiver == ANALYST]
    shares = [sent for sent in to_analyst if sent.message.kind == "share"]
    assert sorted(sent.sender for sent in shares) == ["a", "b", "c"]
    assert {sent.message.kind for sent in to_analyst} == {"answer", "committed", "share"}
    assert not {sent.message.kind for sent, _ in seen if sent.receiver == DEALER} & {"share"}


def test_releases_work_over_a_network():
    with Parties(DATA) as parties, parties.session() as session:
        for site in DATA:
            parties.roles[site].policy = FREE
        session.ask(Commit.of(STUDY))
        asked = FamilyTables(FAMILIES, False, Rule("cut", fewest=5))
        tables = session.ask(Release.of(session.role.joined, asked))
        for table, exact in zip(tables, EXACT, strict=True):
            assert np.array_equal(table, np.where(exact < 5, 0, exact))


# ---- refusals ------------------------------------------------------------------------------------

QUERY = Release.of(
    Joined(STUDY, commitments=None, seed=None), FamilyTables(FAMILIES[:2], False, Rule("exact"))
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"study": b"another"}, "has not committed to this study"),
        ({"families": (Family("x", ("v",)),)}, "the study has no variable 'v'"),
        ({"families": (Family("x", ("z", "x")),)}, "appears twice"),
        ({"families": ()}, "must have families"),
        ({"parties": ("a", "b", DEALER)}, "asks other parties"),
        ({"number": -1}, "masks are used once"),
    ],
)
def test_crafted_releases_are_refused_and_not_noted(changes, reason):
    federation, _ = committed(DATA)
    if "families" in changes:
        changes = {"tables": replace(QUERY.tables, **changes)}
    assert reason in refusal(federation, replace(QUERY, **changes))
    assert not federation.roles["a"].ledger.tables
    assert len(federation.session.ask(QUERY)) == 2


def test_a_release_that_is_too_large_for_the_memory_is_counted_in_parts():
    whole, expected = release(Rule("cut", fewest=4))
    asked = FamilyTables(FAMILIES, False, Rule("cut", fewest=4))

    def plan_at(federation):
        role = federation.session.role
        return Release.of(role.joined, asked).plan(At.of(role))

    plan = plan_at(whole)
    assert len(plan.parts) == 1
    small = replace(STUDY, memory=plan.counting.memory - 1)
    federation, tables = release(Rule("cut", fewest=4), study=small)
    parts = plan_at(federation)
    assert len(parts.parts) > 1 and parts.counting < plan.counting
    assert all(map(np.array_equal, tables, expected))
