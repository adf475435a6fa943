"""Choices: winners equal those of the same integers in the clear, and sites refuse crafted sets."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocols.choice_oracle import (
    decided_wrongly,
    functions_of,
    integer_score,
    integer_values,
    leads,
    oracle,
)
from tests.protocols.network import Parties
from tests.protocols.small import (
    STATES,
    committed,
    data_of,
    packets,
    refusal_of,
    study_of,
)
from tests.protocols.test_choice_precision import k2_score, log_likelihood
from vertibayes.choosing import TableChooser
from vertibayes.counting import PlainCounter
from vertibayes.splitting import split_columns
from vertibayes_mpc.errors import ProtocolError
from vertibayes_protocols.choices import Choices, Constant, Score, constants_last
from vertibayes_protocols.federation import ANALYST, DEALER, federate
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import FREE, Policy
from vertibayes_protocols.queries import Commit, Describe
from vertibayes_protocols.queries.choices import lookups as lookups_module
from vertibayes_protocols.queries.choices.choose import Choose, portions, score_error
from vertibayes_protocols.queries.choices.lookups import ChoiceLookups, choice_lookups
from vertibayes_protocols.queries.choices.scored_tables import ChoiceTables
from vertibayes_protocols.queries.tables import masked_costs
from vertibayes_protocols.queries.tables.masked_costs import most_kept
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.study import Joined
from vertibayes_protocols.variables import Family, Rows, Variable

DATA = data_of(a="xy", b="z", c="w")
STUDY = study_of(DATA)


def score(family, within="", sign=1):
    """Return the score of a child and its parents, each a letter."""
    return Score(Family(family[0], tuple(family[1:])), tuple(within), sign)


def gain(family):
    """Return K2's candidate: the gain of the last parent."""
    return (score(family), score(family[:-1], family[-1], sign=-1))


def chosen(federation, choices):
    """Ask for the winners; those that the sites learn are the same."""
    winners = federation.session.ask(Choose.of(federation.session.role.joined, choices))
    federation.session.ask(Describe(federation.sites))  # the sites have ended the query before
    assert {role.joined.won for role in federation.roles.values()} == {winners}
    decided = federation.session.role.joined.decided
    assert {role.joined.decided for role in federation.roles.values()} == {decided}
    assert len(decided) == len(winners)
    return winners


# ---- winners -------------------------------------------------------------------------------------


RECORDS = 1, 2, 3, 15, 16, 63, 200  # few numbers: functions are kept


@st.composite
def worlds(draw):
    """Draw sites with few columns, some equal, constant or with missing values."""
    sites, records = draw(st.integers(1, 5)), draw(st.sampled_from(RECORDS))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    drawn: dict[str, tuple[Variable, np.ndarray]] = {}
    for name in "uvwxyz":
        states, gaps = draw(st.integers(2, 4)), draw(st.booleans())
        codes = generator.integers(0, states + gaps, records)
        kind = draw(st.sampled_from(("random", "constant", "copy")))
        variable = Variable(name, tuple(map(str, range(states))), gaps)
        if kind == "constant":
            codes[:] = draw(st.integers(0, states - 1))
        elif kind == "copy" and drawn:
            other, codes = draw(st.sampled_from(list(drawn.values())))
            variable = replace(other, name=name)
        drawn[name] = variable, codes.astype(np.uint8)
    data = {}
    for place in range(sites):
        names = "uvwxyz"[place::sites]
        data[f"site {place}"] = SiteData(
            {name: drawn[name][0] for name in names}, {name: drawn[name][1] for name in names}
        )
    return data


@st.composite
def choices(draw):
    """Draw sets of candidates of up to three scores with signs, and constants, of either score."""

    def one():
        names = draw(st.permutations("uvwxyz"))
        members, within = draw(st.integers(1, 3)), draw(st.integers(0, 2))
        sign = draw(st.sampled_from((1, -1)))
        return score(names[:members], names[members : members + within], sign)

    def step():
        child, *others = draw(st.permutations("uvwxyz"))
        before = "".join([child, *others[: draw(st.integers(0, 1))]])
        return ((), *(gain(before + other) for other in others[1:]))

    def free():
        return tuple(
            (*(one() for _ in range(draw(st.integers(0, 3)))), *draw(constants))
            for _ in range(draw(st.integers(2, 4)))
        )

    constants = st.lists(st.builds(Constant, st.integers(-(10**8), 10**8)), max_size=2)
    sets = (draw(st.sampled_from((step, free)))() for _ in range(draw(st.integers(1, 3))))
    kind = draw(st.sampled_from(("k2", "likelihood")))
    drawn = constants_last(Choices(tuple(sets), draw(st.booleans()), score=kind))
    return replace(drawn, sets=tuple(dict.fromkeys(drawn.sets)))


@given(worlds(), choices())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_winners_are_those_of_the_same_integers_in_the_clear(data, asked):
    study = study_of(data, memory=1 << 24)
    federation, _ = committed(data, study, policy=Policy(free_tables=True, fewest_records=1))
    query = Choose.of(federation.session.role.joined, asked)
    assert query.step == asked
    winners, joined = chosen(federation, asked), federation.session.role.joined
    assert winners == oracle(data, study, asked)
    assert joined.decided == leads(data, study, asked)
    assert not decided_wrongly(data, asked, winners, joined.decided)
    by_tables = TableChooser(PlainCounter(pooled(data))).choose(asked)
    both = zip(winners, by_tables, joined.decided, strict=True)
    assert all(by_shares == plain for by_shares, plain, decided in both if decided)


def pooled(data):
    """Return the columns of all sites as those of one."""
    variables = {n: v for site in data.values() for n, v in site.variables.items()}
    return SiteData(variables, {n: c for site in data.values() for n, c in site.codes.items()})


@pytest.mark.parametrize("rows", [Rows(1, 0, 20), Rows(0, 10)])
def test_winners_over_chosen_records(rows):
    data = data_of(a="xy", b="z", c="w")
    federation, study = committed(data)
    asked = Choices((((), gain("xz"), gain("xw")), ((score("x"),), (score("w"),))), rows=rows)
    winners = chosen(federation, asked)
    places = federation.roles["b"].joined.selection(rows).indices
    assert winners == oracle(data, study, asked, places)


def test_the_first_of_equal_candidates_wins():
    """A copy of a column adds nothing to it, nor does a column of one value: no parent wins."""
    data = data_of(a="xy", b="z", c="wv")
    constant = np.zeros(40, np.uint8)
    data["b"].codes["z"][:] = constant
    data["c"].codes["w"][:] = data["a"].codes["x"]
    data["c"].codes["v"][:] = data["a"].codes["x"]
    federation, _ = committed(data)
    sets = ((), gain("yz")), ((), gain("xwv")), ((), gain("xw"), gain("xv")), (gain("xv"), ())
    assert chosen(federation, Choices(sets)) == (0, 0, 1, 0)
    decided = federation.session.role.joined.decided
    assert decided == (False, False, False, True), "of equal candidates none leads"


def test_choices_work_over_a_network():
    asked = Choices((((), gain("xz"), gain("xw")), ((score("xyzw"),), (score("wz"),))))
    with Parties(DATA) as parties, parties.session() as session:
        for site in DATA:
            parties.roles[site].policy = FREE
        study = session.ask(Commit.of(STUDY)).study
        winners = session.ask(Choose.of(session.role.joined, asked))
        session.ask(Describe(parties.sites))
        assert winners == oracle(DATA, study, asked)
        running = [parties.roles[site].shared.running[study.id] for site in DATA]
        assert {of_site.session.joined.won for of_site in running} == {winners}
        decided = {of_site.session.joined.decided for of_site in running}
        assert decided == {session.role.joined.decided} == {leads(DATA, study, asked)}


def test_a_query_ends_candidates_with_one_constant():
    """The analyst and a site, who compare what is asked, divide choices in this form."""
    first, second = Constant(5), Constant(-(10**9))
    asked = Choices((((first, score("xz"), second, score("w")), (Constant(0),), ()),))
    expected = Choices((((score("xz"), score("w"), Constant(5 - 10**9)), (), ()),))
    assert portions(STUDY, asked) == [expected]
    query = Choose.of(Joined(STUDY, commitments=None, seed=None), asked)
    assert query.step == expected


ABC = data_of(a="xy", b="z", c="w")
GAPS = {site: SiteData(
    {n: replace(v, missing=n in "xz") for n, v in of_site.variables.items()}, dict(of_site.codes)
) for site, of_site in ABC.items()}  # fmt: skip
GAPS["a"].codes["x"] = np.where(np.arange(40) % 7, ABC["a"].codes["x"], 3).astype(np.uint8)
GAPS["b"].codes["z"] = np.where(np.arange(40) % 5, ABC["b"].codes["z"], 3).astype(np.uint8)


def likelihood_gain(family):
    """Return the gain of a family over its child alone, over the records of its own table."""
    return (score(family), score(family[0], family[1:], sign=-1))


@pytest.mark.parametrize("data", [ABC, GAPS])
def test_moves_to_equivalent_structures_have_equal_likelihoods(data):
    """Of a -> b and b -> a, and of the two ends of a covered edge, the first wins: exactly."""
    study = study_of(data)
    pairs = [(a + b, b + a) for a, b in ("xz", "xw", "zw", "yz")]
    sets = [(likelihood_gain(a), likelihood_gain(b)) for a, b in pairs]
    sets += [(b, a) for a, b in sets]
    covered = (score("xzw"), score("zw")), (score("zxw"), score("xw"))
    if data is ABC:
        sets.append(covered)
    asked = Choices(tuple(sets), score="likelihood")
    for one in integer_values(data, study, asked):
        assert one[0] == one[1]
    federation, _ = committed(data, study)
    assert set(chosen(federation, asked)) == {0}
    assert not any(federation.session.role.joined.decided)
    k2 = replace(asked, score="k2")
    assert any(a != b for a, b in integer_values(data, study, k2)), "a control: K2 differs"


def test_constants_decide_between_equal_scores():
    one, constants = score("xz"), [Constant(c) for c in (-1_000_000, 0, 1_000_000)]
    sets = (tuple((one, c) for c in constants), tuple((c, one) for c in reversed(constants)))
    for kind in ("k2", "likelihood"):
        federation, _ = committed(DATA)
        assert chosen(federation, Choices(sets, score=kind)) == (2, 0)
        assert federation.session.role.joined.decided == (True, True)


# ---- what is seen, noted and remembered ----------------------------------------------------------


ASKED = Choices((((), gain("xz"), gain("xw")), ((score("x"),), (score("w"),))))


def test_the_analyst_receives_winners_and_the_dealer_nothing(monkeypatch):
    with packets(monkeypatch) as seen:
        federation, _ = committed(DATA)
        before = len(seen)
        chosen(federation, ASKED)
    received = {}
    for sent, _ in seen[before:]:
        received.setdefault(sent.receiver, set()).add(sent.message.kind)
    assert received[ANALYST] == {"answer", "winners", "description"}
    assert received[DEALER] == {"choose", "go"}


def test_what_the_dealer_sends_does_not_depend_on_the_data(monkeypatch):
    """What the sites send does, under the same masks: so the comparison can fail."""
    sent = []
    for shift in (0, 1):
        data = data_of(a="xy", b="z", c="w")
        data["b"].codes["z"][:] = (data["b"].codes["z"] + shift) % 3
        with packets(monkeypatch) as seen:
            federation, _ = committed(data)
            chosen(federation, ASKED)
        sent.append({party: of_sender(seen, party) for party in (DEALER, "b")})
    assert sent[0][DEALER] == sent[1][DEALER] and len(sent[0][DEALER]) > 5
    assert sent[0]["b"] != sent[1]["b"]


def of_sender(seen, party):
    return [packet[1] for message, packet in seen if message.sender == party]


# ---- sums that are kept --------------------------------------------------------------------------


LATER = Choices((((score("zx"), score("x", sign=-1)), (score("xz"), score("z", sign=-1)), ()),))
LOOKED_UP = {"lookup", "lookup masks"}


COUNTED = {"masked", "part", "correction"}


def kinds_of(seen, federation, asked):
    """Choose; return the winners, and the kinds of all messages."""
    before = len(seen)
    winners = chosen(federation, asked)
    return winners, {sent.message.kind for sent, _ in seen[before:]}


@pytest.mark.parametrize("kind", ["k2", "likelihood"])
def test_sums_that_were_looked_up_are_not_looked_up_again(kind, monkeypatch):
    """The variables of a family come in another order, and the scores in another candidate."""
    first = Choices((((score("xz"),), (score("x"),), (score("zx"),), (score("z"),)),), score=kind)
    later = replace(LATER, score=kind)
    with packets(monkeypatch) as seen:
        federation, _ = committed(DATA)
        won, kinds = kinds_of(seen, federation, first)
        assert won == oracle(DATA, STUDY, first) and kinds > LOOKED_UP and kinds & COUNTED
        for asked in (later, first):
            won, kinds = kinds_of(seen, federation, asked)
            assert won == oracle(DATA, STUDY, asked) and not kinds & (LOOKED_UP | COUNTED)
            assert federation.session.role.joined.decided == leads(DATA, STUDY, asked)


@pytest.mark.parametrize(
    "changes", [{"rows": Rows(1, 0, 20)}, {"missing": True}, {"score": "likelihood"}]
)
def test_sums_of_other_records_states_or_scores_are_looked_up(changes, monkeypatch):
    asked = replace(ASKED, **changes)
    with packets(monkeypatch) as seen:
        federation, _ = committed(GAPS)
        chosen(federation, ASKED)
        won, kinds = kinds_of(seen, federation, asked)
    assert kinds > LOOKED_UP and kinds & COUNTED
    if "rows" not in changes:
        assert won == oracle(GAPS, study_of(GAPS), asked)


@given(worlds(), st.lists(choices(), min_size=2, max_size=3))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_winners_with_kept_sums_are_those_of_the_same_integers(data, queries):
    study = study_of(data, memory=1 << 24)
    federation, _ = committed(data, study, policy=Policy(free_tables=True, fewest_records=1))
    for asked in queries:
        assert chosen(federation, asked) == oracle(data, study, asked)


def test_sites_share_each_kept_sum_and_the_others_keep_none():
    """The shares add up to the sums; the analyst and the dealer know which there are."""
    federation, _ = committed(DATA)
    chosen(federation, ASKED)
    everyone = [role.joined for role in federation.roles.values()]
    everyone.append(federation.session.role.joined)
    (kept, *others) = [joined.sums[ASKED.rows, False] for joined in everyone]
    assert kept and all(other.keys() == kept.keys() for other in others)
    assert not any(others[-1].values()) and any(kept.values())
    functions = functions_of("k2", 40, next(iter(kept)).precision.fraction_bits)
    for key in kept:
        if key.table == key.kept == {"x", "z"} and key.shift == 1:
            table = integer_score(DATA, score("xz"), lambda r: (functions(r)[0], zero), False)
            total = sum(of_site[key] for of_site in (kept, *others[:-1]))
            assert total % 2**key.precision.ring.bits == table % 2**key.precision.ring.bits
            break
    else:
        raise AssertionError("the table was not looked up")


def zero(counts):
    return np.zeros(len(counts), np.int64)


def test_sums_in_a_smaller_ring_are_looked_up_again(monkeypatch):
    """Values that may differ by 10^9 nats need a larger ring; each ring keeps its own shares."""
    far = replace(ASKED, sets=tuple(((Constant(-(10**15)),), *own) for own in ASKED.sets))
    with packets(monkeypatch) as seen:
        federation, _ = committed(DATA)
        for asked, looked_up in ((ASKED, True), (far, True), (ASKED, False), (far, False)):
            won, kinds = kinds_of(seen, federation, asked)
            assert won == oracle(DATA, STUDY, asked) and (kinds > LOOKED_UP) == looked_up
    rings = {key.precision.ring for key in federation.session.role.joined.sums[Rows(), False]}
    assert len(rings) == 2


def test_kept_sums_are_not_used_if_the_query_would_not_fit_beside_them(monkeypatch):
    monkeypatch.setattr(ChoiceLookups, "fits", property(lambda needed: not needed.tables.known))
    with packets(monkeypatch) as seen:
        federation, _ = committed(DATA)
        for _ in range(2):
            won, kinds = kinds_of(seen, federation, ASKED)
            assert won == oracle(DATA, STUDY, ASKED) and kinds > LOOKED_UP


def test_no_more_sums_are_kept_than_a_session_may_keep(monkeypatch):
    monkeypatch.setattr(masked_costs, "MOST_KEPT", 8)
    federation, _ = committed(DATA)
    for asked in (ASKED, LATER, PREFIXES, LATER):
        assert chosen(federation, asked) == oracle(DATA, STUDY, asked)
    kept = [role.joined.sums for role in federation.roles.values()]
    assert all(0 < sum(map(len, sums.values())) <= 8 for sums in kept)


def test_kept_sums_and_a_query_fit_the_memory_of_a_study_together(monkeypatch):
    memory = choice_lookups(STUDY, PREFIXES).planned.memory
    monkeypatch.setattr(masked_costs, "KEPT_PART", 1)
    monkeypatch.setattr(masked_costs, "KEPT_BYTES", memory // 10)
    study = replace(STUDY, memory=memory)
    assert most_kept(study) == 10
    assert not choice_lookups(study, PREFIXES).fits, "all of the memory is for what is kept"
    monkeypatch.setattr(masked_costs, "KEPT_PART", 10)
    study = replace(STUDY, memory=2 * memory)
    federation, _ = committed(DATA, study)
    for asked in (ASKED, LATER, PREFIXES):
        assert choice_lookups(study, asked).planned.memory + 2 * (memory // 10) <= study.memory
        assert chosen(federation, asked) == oracle(DATA, study, asked)
    assert all(
        sum(map(len, role.joined.sums.values())) <= most_kept(study) == 2
        for role in federation.roles.values()
    )


def test_lookups_beside_kept_sums_are_planned_once_and_end_with_the_session(monkeypatch):
    made = []
    beside = ChoiceTables.beside
    monkeypatch.setattr(
        ChoiceTables, "beside", lambda tables, kept: made.append(kept) or beside(tables, kept)
    )
    federation, _ = committed(DATA)
    for asked in (ASKED, LATER, LATER):
        chosen(federation, asked)
    assert len(made) == 2, "of two queries that had kept sums, by all parties together"
    del federation
    made.clear()
    gc.collect()
    assert not lookups_module._shared


def test_a_party_that_has_lost_its_sums_stops_the_query():
    federation, _ = committed(DATA)
    chosen(federation, ASKED)
    federation.roles["b"].joined.sums.clear()
    with pytest.raises(ProtocolError):
        chosen(federation, LATER)


@pytest.mark.parametrize("lost", ["site-1", "site-2"])
def test_a_site_that_has_lost_its_sums_never_changes_a_winner(lost):
    """Its table needs no message of another site, so that only the labels of later ones tell."""
    generator = np.random.default_rng(0)
    codes = {name: generator.integers(0, 2, 3000).astype(np.uint8) for name in "abcd"}
    data = SiteData({name: Variable(name, ("0", "1")) for name in codes}, codes)
    by_a, by_c = ((Score(Family("d", (parent,))),) for parent in "ac")
    with federate(split_columns(data, 2), policy=Policy(free_tables=True)) as federation:
        study = open_study(federation.session, federation.sites, federation.dealer)
        study.choose(Choices((((Score(Family("d")),), by_a),)))
        federation.roles[lost].joined.sums.clear()
        with pytest.raises(ProtocolError):
            study.choose(Choices(((by_a, by_c),)))


# ---- refusals ------------------------------------------------------------------------------------


def numbers(*values, dtype=np.uint32):
    return np.array(values, dtype)


QUERY = Choose.of(
    Joined(STUDY, commitments=None, seed=None), Choices((((), (score("xz"),)), ((), (score("w"),))))
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"study": b"another"}, "has not committed to this study"),
        ({"variables": ("x", "z", "v")}, "the study has no variable 'v'"),
        ({"members": numbers(0, 1, 3)}, "places beyond the query's variables"),
        ({"members": numbers(0, 0, 2)}, "appears twice"),
        ({"members": numbers(0, 1)}, "must fit the arrays"),
        ({"families": numbers(3, 1)}, "must fit the arrays"),
        ({"families": numbers(3, 0)}, "must have a child"),
        ({"families": numbers(2, 2**32 - 1)}, "must fit the arrays"),
        ({"families": numbers((2, 1))}, "must be lists"),
        ({"withins": numbers(0)}, "a sign and two lengths"),
        ({"signs": numbers(1, 2, dtype=np.int64)}, "must be 1 or -1"),
        ({"signs": numbers(1, -(2**63), dtype=np.int64)}, "must be 1 or -1"),
        ({"candidates": numbers(0, 1, 0, 2)}, "must fit the arrays"),
        ({"constants": numbers(0, 0, 0, dtype=np.int64)}, "must have a constant"),
        ({"constants": numbers(0, 0, 10**15 + 1, 0, dtype=np.int64)}, "at most 1000000000000000"),
        ({"constants": numbers(0, -(2**63), 0, 0, dtype=np.int64)}, "got -9223372036854775808"),
        ({"sets": numbers(1, 3)}, "at least two candidates each"),
        ({"sets": numbers(4, 0)}, "at least two candidates each"),
        ({"parties": ("a", "b", DEALER)}, "asks other parties"),
        ({"parties": ("a", "c", "b", DEALER)}, "asks other parties"),
        ({"number": -1}, "masks are used once"),
        ({"rows": Rows(last=41)}, "does not lie within 40 records"),
    ],
)
def test_crafted_choices_are_refused_and_not_noted(changes, reason):
    federation, _ = committed(DATA)
    assert reason in refusal_of(federation, lambda: replace(QUERY, **changes))
    assert not any("candidates" in f.what for f in federation.roles["a"].ledger.facts)
    assert federation.session.ask(QUERY) is not None


def test_a_column_that_is_too_wide_is_named():
    study = study_of(DATA, most_indicators=1)
    with pytest.raises(ValueError, match=r"table of x, z cannot be counted .* 'x' has 3 states"):
        portions(study, Choices((((), (score("xz"),)),)))


# ---- sizes ---------------------------------------------------------------------------------------


def test_sets_are_divided_into_queries_that_fit():
    sets = ((), gain("xyz"), gain("xyw")), ((), gain("yxz"), gain("zwx")), ((), gain("wzx"))
    asked = Choices(sets)
    assert portions(STUDY, asked) == [asked]
    needed = choice_lookups(STUDY, asked).planned.memory
    study = replace(STUDY, memory=needed - 1)
    divided = portions(study, asked)
    assert len(divided) > 1 and sum((p.sets for p in divided), ()) == sets
    assert all(choice_lookups(study, portion).fits for portion in divided)
    federation, _ = committed(DATA, study)
    opened = OpenStudy(federation.session, federation.session.role.joined, 8)
    assert opened.choose(asked) == oracle(DATA, study, asked)
    assert opened.joined.decided == leads(DATA, study, asked)
    assert opened.score_error(asked) == score_error(study, asked) < 1e-3


PREFIXES = Choices(((gain("xyz"), gain("zwx"), gain("ywz"), gain("yxw")),))


def test_tables_are_divided_into_parts_that_fit():
    one = choice_lookups(STUDY, PREFIXES)
    assert one.parts == [list(one.tables.groups)] and len(one.tables.groups) > 4
    memory = one.counted.memory - 10_000
    needed = choice_lookups(replace(STUDY, memory=memory), PREFIXES)
    costs = needed._costs
    sizes = [costs.products_memory(costs.columns([g.prefix for g in p])) for p in needed.parts]
    assert len(sizes) > 1 and max(sizes) + needed._held < one.counted.memory
    assert needed.counted.memory == max(sizes) + needed._held
    assert [group for part in needed.parts for group in part] == list(needed.tables.groups)


def test_tables_that_are_counted_in_parts_are_the_same(monkeypatch):
    alone = property(lambda needed: [[group] for group in needed.tables.groups])
    monkeypatch.setattr(ChoiceLookups, "parts", alone)
    federation, _ = committed(DATA)
    assert chosen(federation, PREFIXES) == oracle(DATA, STUDY, PREFIXES)


def test_a_set_that_does_not_fit_names_its_largest_table():
    study = replace(STUDY, memory=1000)
    with pytest.raises(ValueError, match="the largest with the table of x, y, z of"):
        portions(study, Choices((((), gain("xyz"), gain("xw")),)))


def test_equal_counts_are_looked_up_once_and_by_their_holders_alone():
    """Of x | z and x | z, w: x, z; z with shift 3; x, z, w; and z, w by b and c alone."""
    sets = ((), (score("xz"),), (score("xz"), score("xzw"))), ((score("zx"),), ())
    assert looked_up(Choices(sets)) == [
        (1, "xz", ("a", "b")),
        (1, "xzw", ("a", "b", "c")),
        (3, "x", ("a",)),
        (3, "z", ("b",)),
        (3, "zw", ("b", "c")),
    ]


def test_a_likelihood_looks_up_cells_and_columns_with_one_function():
    """Of x | z, z | w and w: z, w and x, z, w are cells and columns; n is public."""
    sets = ((), (score("xz"), score("zw"), score("wxz"), score("w"))), ((score("zx"),), ())
    assert looked_up(Choices(sets, score="likelihood")) == [
        (0, "", ()),
        (0, "w", ("c",)),
        (0, "wxz", ("a", "b", "c")),
        (0, "x", ("a",)),
        (0, "xz", ("a", "b")),
        (0, "z", ("b",)),
        (0, "zw", ("b", "c")),
    ]


def looked_up(asked):
    """Return the lookups of choices: shift, variables and holders."""
    tables = choice_lookups(STUDY, asked).tables
    holders = (tables.holders.get(lookup.table, ()) for lookup in tables.lookups)
    each = zip(tables.lookups, holders, strict=True)
    return sorted((lookup.shift, "".join(lookup.kept), held) for lookup, held in each)


# ---- precision -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "exact"), [("k2", k2_score), ("likelihood", log_likelihood)])
@pytest.mark.parametrize("records", [50, 2000])
def test_values_are_within_the_stated_error_of_scores(records, kind, exact):
    variables = {name: Variable(name, STATES) for name in "xyz"}
    codes = np.random.default_rng(5).integers(0, 3, (3, records)).astype(np.uint8)
    data = {"a": SiteData(variables, dict(zip("xyz", codes, strict=True)))}
    asked = Choices((((), (score("xyz"),)),), score=kind)
    needed = choice_lookups(study_of(data), asked)
    bits = needed.precision.fraction_bits
    functions = functions_of(kind, records, bits)
    value = integer_score(data, score("xyz"), functions, False) / 2**bits
    table = np.zeros((3, 3, 3), np.int64)
    np.add.at(table, tuple(codes), 1)
    assert abs(value - exact(table)) <= score_error(study_of(data), asked) < 0.01
