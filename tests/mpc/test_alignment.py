import pickle
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alignment_worlds import RINGS, align, plan_of, programs, rows_of
from tests.randomness import SeededRandomness
from tests.tampering import changing, run_changing
from vertibayes_mpc import integers
from vertibayes_mpc.alignment import (
    AlignmentPlan,
    Member,
    match_people,
    place_people,
    share_people,
)
from vertibayes_mpc.alignment.curve import blind, hash_to_curve
from vertibayes_mpc.alignment.messages import (
    Chosen,
    Keys,
    Links,
    Marks,
    Outcome,
    Places,
    RowMasks,
    Rows,
)
from vertibayes_mpc.elligator import elligator2
from vertibayes_mpc.errors import (
    MalformedMessageError,
    PeopleNotApartError,
    TooFewPeopleError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.randomness import StreamKey
from vertibayes_mpc.scheduler import run_all


def added_up(plan, outputs, owner):
    """Add the shares of all sites: the rows of one site, over the study's people."""
    rings = enumerate(plan.rings(owner))
    shares = [outputs[site].shares[owner] for site in plan.sites]
    return [ring.reduce(sum(share[at] for share in shares)) for at, ring in rings]


@st.composite
def worlds(draw):
    """Lists of 2 to 5 sites, who must be in all of which, and padded sizes."""
    sites = "abcde"[: draw(st.integers(2, 5))]
    people = st.lists(st.integers(0, 6), unique=True, min_size=1)
    lists = {site: [b"%d" % person for person in draw(people)] for site in sites}
    everyone = tuple(draw(st.lists(st.sampled_from(sites), unique=True)))
    padding = {site: draw(st.integers(0, 2)) for site in sites}
    exact = plan_of(lists, everyone).exact
    sizes = {s: len(lists[s]) + (0 if s in exact else padding[s]) for s in sites}
    return lists, everyone, sizes


def joined(lists, everyone):
    """The oracle: who is in the study."""
    if not everyone:
        return set().union(*lists.values())
    return set.intersection(*(set(lists[site]) for site in everyone))


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_sites_learn_the_places_of_the_people_whom_a_join_has(world):
    lists, everyone, sizes = world
    plan, study = plan_of(lists, everyone, sizes=sizes), joined(lists, everyone)
    if not study:
        with pytest.raises(TooFewPeopleError, match="write identifiers differently"):
            align(plan, lists)
        return
    outputs = align(plan, lists)
    person = {}
    for site, people in lists.items():
        assert outputs[site].people == outputs["analyst"].people == len(study)
        places = outputs[site].places
        assert places.dtype == np.int64 and len(places) == len(people)
        for place, identifier in zip(places.tolist(), people, strict=True):
            assert (place >= 0) == (identifier in study)
            assert place < 0 or person.setdefault(place, identifier) == identifier
    assert set(person) <= set(range(len(study))) and len(set(person.values())) == len(person)
    padding = sum(sizes[site] - len(lists[site]) for site in lists)
    people = len(set().union(*lists.values()))
    assert sum(outputs["analyst"].regions.values()) == people + padding
    for region, count in outputs["analyst"].regions.items():
        inside = joined(lists, region) - set().union(*(lists[s] for s in lists if s not in region))
        assert len(region) == 1 or len(inside) == count


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_sites_share_the_rows_of_the_people_whom_a_join_has(world):
    lists, everyone, sizes = world
    plan, study = plan_of(lists, everyone, 2, sizes=sizes), joined(lists, everyone)
    if not study:
        with pytest.raises(TooFewPeopleError):
            align(plan, lists)
        return
    outputs = align(plan, lists)
    rows = rows_of(lists)
    cells = []
    for site, people in lists.items():
        held = [dict(zip(people, column.tolist(), strict=True)) for column in rows[site]]
        cells += [[column.get(person, 0) for person in study] for column in held]
    shared = [column.tolist() for site in lists for column in added_up(plan, outputs, site)]
    assert sorted(zip(*shared, strict=True)) == sorted(zip(*cells, strict=True))
    assert outputs["dealer"] == outputs["analyst"].people == len(study)


# ---- points --------------------------------------------------------------------------------------


def by_a_power(r):
    """Elligator 2 as in section 5 of the paper: an inverse and a character for each element."""
    p, a = 2**255 - 19, 486_662
    v = -a * pow(1 + 2 * r * r, -1, p) % p
    on_curve = pow(v * (v * v + a * v + 1), (p - 1) // 2, p) in (0, 1)
    return v if on_curve else (-v - a) % p


@given(st.lists(st.integers(0, 2**255 - 20), max_size=5))
def test_a_batch_has_the_points_of_single_elements_with_and_without_gmpy2(elements):
    expected = [by_a_power(element) for element in elements]
    assert elligator2(elements) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integers, "_gmpy2", None)
        assert elligator2(elements) == expected


def test_the_vectors_of_rfc_9380():
    """Appendix J.4.2: Q.x = elligator2(u) of CURVE25519_XMD:SHA-512_ELL2_NU_, without a message."""
    u = 0x608D892B641F0328523802A6603427C26E55E6F27E71A91A478148D45B5093CD
    x = 0x51125222DA5E763D97F3C10FCC92EA6860B9CCBBD2EB1285728F566721C1E65B
    assert elligator2([u]) == [x]


def test_points_depend_on_the_text_and_the_key():
    points = [hash_to_curve([text], key) for text in (b"a", b"b") for key in (b"1", b"2")]
    assert len(set(points)) == 4 and hash_to_curve([b"a", b"b"], b"1") == points[0] + points[2]


def test_two_scalars_commute():
    point, one, other = hash_to_curve([b"a"], b"key"), b"1" * 32, b"2" * 32
    assert blind(blind(point, one, map), other, map) == blind(blind(point, other, map), one, map)


# ---- messages ------------------------------------------------------------------------------------

TWO = {"a": [b"1", b"2", b"3"], "b": [b"3", b"1", b"4"]}
THREE = {**TWO, "c": [b"5", b"1", b"3", b"6"]}


@pytest.mark.parametrize("lists", [TWO, THREE], ids=len)
@pytest.mark.parametrize("level", [1, 2])
def test_the_rounds_are_few(lists, level):
    plan = plan_of(lists, level=level)
    _, transcript = run_all(programs(plan, lists))
    assert max(sent.depth for sent in transcript) == (
        2 * len(lists) if level == 1 else len(lists) + 2
    )


def test_the_order_of_a_list_does_not_matter():
    turned = {site: people[::-1] for site, people in THREE.items()}
    for level in (1, 2):
        plan = plan_of(THREE, level=level)
        one, other = align(plan, THREE), align(plan, turned)
        assert one["analyst"] == other["analyst"]
    assert one["analyst"].regions == {
        ("a",): 1,
        ("b",): 1,
        ("c",): 2,
        ("a", "b", "c"): 2,
    }


@pytest.mark.parametrize("level", [1, 2])
def test_large_lists_travel_in_pieces(level, monkeypatch):
    plan = plan_of(THREE, level=level, sizes={"a": 9})
    whole, few = run_all(programs(plan, THREE))
    monkeypatch.setattr("vertibayes_mpc.alignment.messages.PIECE_BYTES", 64)
    monkeypatch.setattr("vertibayes_mpc.alignment.chain.TASK_KEYS", 2)
    monkeypatch.setattr("vertibayes_mpc.alignment.curve.TASK_KEYS", 2)
    pieces, many = run_all(programs(plan, THREE))
    assert len(many) > 1.5 * len(few)
    assert all(s.message.values.nbytes <= 64 for s in many)
    assert pieces["analyst"] == whole["analyst"]
    for site in THREE:
        assert str(pieces[site]) == str(whole[site])  # the streams are the same


@pytest.mark.parametrize("level", [1, 2])
def test_few_keys_are_blinded_between_two_messages(level, monkeypatch):
    """The other sessions of a site wait meanwhile."""
    plan = plan_of(THREE, level=level, sizes={"a": 9})
    whole, _ = run_all(programs(plan, THREE))
    monkeypatch.setattr("vertibayes_mpc.alignment.chain.PIECE_KEYS", 2)
    pieces, sent = run_all(programs(plan, THREE))
    rings = {s: plan.rings(s) for s in THREE}
    rows = {s: sum(ring.packed_size(2) for ring in rings[s]) for s in THREE}
    sizes = {s: 2 * 32 + rows[s] + 32 for s in THREE}  # and the name of the message
    links = [s.message.values.nbytes for s in sent if isinstance(s.message, Links)]
    assert len(links) >= 2 * 5 and max(links) <= max(sizes.values())
    assert all(str(pieces[site]) == str(whole[site]) for site in THREE)


def test_tasks_may_run_elsewhere():
    """The tasks of a pool of processes are pickled, and this test is in their place."""
    calls = []

    def spread(work, tasks):
        calls.append(work)
        return [pickle.loads(pickle.dumps(work))(task) for task in tasks]

    plan = plan_of(TWO)
    members = {s: Member(s, StreamKey(bytes(32)), SeededRandomness(), None, spread) for s in TWO}
    steps = {s: place_people(members[s], plan, TWO[s]) for s in TWO}
    outputs, _ = run_all({"analyst": match_people(plan, SeededRandomness()), **steps})
    assert outputs["a"].people == 2 and len(calls) == 4


def test_each_site_has_another_scalar_in_each_run():
    scalars, plan = defaultdict(set), plan_of(THREE)

    def member(site, run):
        def spread(work, tasks):
            scalars[site, run].add(work.args[-1])
            return map(work, tasks)

        return Member(
            site, StreamKey(bytes(32)), SeededRandomness(run + site.encode()), None, spread
        )

    for run in (b"1", b"2"):
        steps = {s: place_people(member(s, run), plan, people) for s, people in THREE.items()}
        run_all({"analyst": match_people(plan, SeededRandomness()), **steps})
    assert {len(used) for used in scalars.values()} == {1}
    assert len(set.union(*scalars.values())) == len(scalars) == 6


# ---- what a caller gives -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sites": ("a",)}, "two or more different"),
        ({"sites": ("a", "a")}, "two or more different"),
        ({"sites": tuple(map(str, range(64)))}, "at most 63 sites, got 64"),
        ({"sizes": {"a": 1}}, "for each site"),
        ({"sizes": {"a": 1, "b": 0}}, "above 0"),
        ({"everyone": ("x",)}, "not a site: x"),
        ({"apart": (("a", "a"),)}, "pairs of different sites"),
        ({"fewest": 0}, "at least 1, got 0"),
        ({"dealer": "dealer"}, "level 2 needs a dealer and the rows of all sites"),
        ({"rows": {"a": RINGS, "b": RINGS}}, "level 2 needs a dealer"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(change, message):
    given = {"run": b"", "sites": ("a", "b"), "sizes": {"a": 1, "b": 1}, "matcher": "analyst"}
    with pytest.raises(ValueError, match=message):
        AlignmentPlan(**{**given, "everyone": (), **change})


def test_as_many_sites_as_a_plan_takes_are_aligned():
    lists = {f"site {place}": [b"1"] for place in range(63)}
    plan = plan_of(lists, apart=())
    assert align(plan, lists)["analyst"].regions == {plan.sites: 1}


GROUPS = [  # as sequences of names, the groups of two plans are the same
    {"everyone": ("a", "2", "b"), "apart": ()},
    {"everyone": ("a",), "apart": (("b", "2"),)},
    {"everyone": (), "apart": (("a", "b"),)},
    {"everyone": ("a", "b"), "apart": ()},
    {"everyone": ("a", "group", "a", "b"), "apart": ()},
    {"everyone": ("a",), "apart": (("a", "b"),)},
]


def test_plans_with_other_groups_have_other_labels():
    sites = ("a", "b", "group", "2")
    sizes = dict.fromkeys(sites, 1)
    plans = [AlignmentPlan(b"run", sites, sizes, "analyst", **groups) for groups in GROUPS]
    assert len({plan.label for plan in plans}) == len(plans)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(
    ("people", "message"),
    [
        ([b"1", b"2", b"1"], "records 0 and 2"),
        ([b"1", b"2", b"3", b"4"], "more than its public size, 3"),
    ],
)
def test_a_list_that_does_not_fit_is_refused_before_anything_is_sent(people, message, level):
    program = programs(plan_of(TWO, level=level), {**TWO, "a": people})["a"]
    with pytest.raises(ValueError, match=message):
        next(program)


def test_a_list_of_which_anybody_is_in_the_study_is_not_padded():
    plan = plan_of(TWO, everyone=(), sizes={"a": 4})
    with pytest.raises(ValueError, match="nobody could distinguish padding"):
        next(programs(plan, TWO)["a"])


@pytest.mark.parametrize(
    "rows", [[], [np.zeros(3, np.uint32)] * 2, [np.zeros(2, r.dtype) for r in RINGS]]
)
def test_rows_that_do_not_fit_are_refused(rows):
    with pytest.raises(ValueError, match="rows must be arrays of 3 elements"):
        next(programs(plan_of(TWO, level=2), TWO, rows={**rows_of(TWO), "a": rows})["a"])


def test_the_programs_of_the_other_level_are_refused():
    member = Member("a", StreamKey(bytes(32)), SeededRandomness())
    with pytest.raises(ValueError, match="share_people"):
        next(place_people(member, plan_of(TWO, level=2), TWO["a"]))
    for level in (1, 2):
        with pytest.raises(ValueError, match="the key shared with the dealer"):
            next(share_people(member, plan_of(TWO, level=level), TWO["a"], []))


# ---- studies that cannot be ----------------------------------------------------------------------


def errors_of(plan, lists):
    """Run each program until it ends; return the errors by party."""
    errors, steps = {}, programs(plan, lists)

    def guarded(party):
        try:
            yield from steps[party]
        except Exception as error:
            errors[party] = error

    run_all({party: guarded(party) for party in steps})
    return errors


@pytest.mark.parametrize("level", [1, 2])
def test_all_parties_learn_that_too_few_people_are_in_common(level):
    plan = plan_of(THREE, level=level, fewest=3)
    errors = errors_of(plan, THREE)
    assert set(errors) == {*THREE, "analyst"} | ({"dealer"} if level == 2 else set())
    assert all(type(error) is TooFewPeopleError for error in errors.values())
    assert {error.people for error in errors.values()} == {2}
    text = "a, b, c: too few people in the study: 2; at least 3 expected"
    assert {str(error) for error in errors.values()} == {text}


@pytest.mark.parametrize("level", [1, 2])
def test_lists_without_common_people_say_what_to_compare(level):
    lists = {"a": [b"1", b"2"], "b": [b"01", b"02"]}
    errors = errors_of(plan_of(lists, level=level), lists)
    assert all("compare their rules" in str(error) for error in errors.values()) and errors


def test_a_site_refuses_if_its_tables_would_be_those_of_few_people_left_out():
    lists = {"a": [b"%d" % i for i in range(7)], "b": [b"%d" % i for i in range(6)]}
    plan = plan_of(lists, level=2, fewest=2, sizes={"a": 9})
    stops = programs(plan, lists)
    with pytest.raises(TooFewPeopleError, match=r"^a: fewer than 2 people") as raised:
        run_all({"a": stops.pop("a"), **stops})
    assert raised.value.parties == ("a",) and "1" not in raised.value.reason
    outputs = align(plan_of(lists, level=1, fewest=2), lists)
    assert outputs["a"].people == 6


@pytest.mark.parametrize("level", [1, 2])
def test_people_of_two_sites_that_must_be_apart_are_an_error_with_their_number(level):
    plan = plan_of(THREE, everyone=("c",), level=level, apart=(("a", "b"),))
    errors = errors_of(plan, THREE)
    assert all(type(error) is PeopleNotApartError for error in errors.values())
    assert {error.people for error in errors.values()} == {2}
    assert errors["c"].parties == ("a", "b") and "analyst" in errors
    apart = {**THREE, "b": [b"6", b"9"]}
    outputs = align(plan_of(apart, everyone=("c",), level=level, apart=(("a", "b"),)), apart)
    assert outputs["c"].people == 4


# ---- bad messages --------------------------------------------------------------------------------


def spoiled(plan, sender, receiver, kind, change, lists=THREE):
    """Run with the messages of a kind between two parties changed; return the error."""

    def changed(message):
        return replace(message, values=change(message.values.copy()))

    errors = MalformedMessageError, UnknownFaultyPartyError, UnexpectedMessageError
    with pytest.raises(errors) as caught:
        run_changing(programs(plan, lists), changing(kind, changed, sender, receiver))
    return caught.value


def numbers(change):
    def changed(values):
        whole = values.view("<u4")
        change(whole)
        return values

    return changed


def repeat(values):
    inside = np.flatnonzero(values != 2**32 - 1)
    values[inside[1]] = values[inside[0]]


def far(values):
    values[np.flatnonzero(values != 2**32 - 1)[0]] = 99


def nowhere(values):
    values[np.flatnonzero(values != 2**32 - 1)[0]] = 2**32 - 1


def zeros(values):
    values[:] = 0
    return values


@pytest.mark.parametrize(
    ("level", "sender", "receiver", "kind", "change", "message"),
    [
        (1, "a", "b", Links, zeros, "of small order"),
        (2, "c", "a", Links, lambda v: v[:-1], r"expected \(\d+,\)"),
        (1, "b", "analyst", Keys, lambda v: v[16:], "expected"),
        (1, "analyst", "b", Outcome, zeros, "another number|people"),
        (2, "analyst", "dealer", Outcome, lambda v: v[:1], "expected"),
        (1, "analyst", "c", Marks, numbers(repeat), "recurs"),
        (1, "b", "a", Marks, numbers(far), "out of range"),
        (1, "analyst", "a", Places, numbers(repeat), "recurs"),
        (1, "analyst", "a", Places, numbers(far), "out of range"),
        (1, "analyst", "a", Places, numbers(nowhere), "a missing place"),
        (2, "analyst", "dealer", Chosen, numbers(repeat), "recurs"),
        (2, "analyst", "a", Chosen, numbers(far), "out of range"),
        (2, "analyst", "dealer", Chosen, numbers(nowhere), "a missing place"),
        (2, "b", "a", Rows, lambda v: v[:-3], "expected"),
        (2, "dealer", "a", RowMasks, lambda v: v.view(np.int8), "expected"),
    ],
)
def test_a_bad_message_names_its_sender(level, sender, receiver, kind, change, message):
    plan = plan_of(THREE, level=level)
    if kind is Outcome and level == 1:
        with pytest.raises(TooFewPeopleError):
            spoiled(plan, sender, receiver, kind, change)
        return
    error = spoiled(plan, sender, receiver, kind, change)
    assert isinstance(error, MalformedMessageError) and error.party == sender
    with pytest.raises(MalformedMessageError, match=message):
        raise error


def test_counts_that_cannot_be_name_the_matcher():
    def more_held(values):
        values.view(np.uint64)[1] = 99
        return values

    error = spoiled(plan_of(THREE), "analyst", "c", Outcome, more_held)
    assert isinstance(error, MalformedMessageError) and error.party == "analyst"


def test_the_matcher_cannot_say_that_more_people_of_a_list_are_left_out_than_are():
    """One person of a is left out; the matcher says that they are two, which would be enough."""
    lists = {"a": [b"%d" % i for i in range(7)], "b": [b"%d" % i for i in range(6)]}
    plan = plan_of(lists, level=2, fewest=2)

    def fewer_held(values):
        values.view(np.uint64)[1] -= 1
        return values

    error = spoiled(plan, "analyst", "a", Outcome, fewer_held, lists)
    assert isinstance(error, MalformedMessageError) and error.party == "analyst"


def test_a_list_with_a_key_twice_is_noticed():
    def twice(values):
        keys = values.reshape(-1, 32)
        keys[1] = keys[0]
        return values

    error = spoiled(plan_of(THREE), "a", "b", Links, twice)
    assert isinstance(error, UnknownFaultyPartyError) and error.parties == ("a", "b", "c")


def test_padding_with_a_place_is_noticed():
    """The last site of the chain of c moves the marks: all of them to padding, most likely."""
    plan = plan_of(THREE, sizes={"c": 60})

    def turned(values):
        return np.roll(values, 4)

    error = spoiled(plan, "b", "a", Marks, turned)
    assert isinstance(error, UnknownFaultyPartyError) and "padding" in error.reason


def test_parties_with_different_plans_notice_it():
    mine = programs(plan_of(TWO), TWO)
    theirs = programs(plan_of(TWO, sizes={"b": 5}), TWO)
    with pytest.raises((UnexpectedMessageError, MalformedMessageError)):
        run_all({**mine, "b": theirs["b"]})
