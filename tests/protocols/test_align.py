"""The sites find out who is in a study; everything after that counts these people alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.listed import DIGITS, Listed, counted, opened, site_of
from tests.protocols.small import memories, packets, refusal
from tests.randomness import SeededRandomness
from vertibayes_mpc.alignment.match import _Study
from vertibayes_mpc.alignment.messages import Keys
from vertibayes_mpc.errors import PeopleNotApartError
from vertibayes_protocols.alignment import AlignmentLimits, AlignmentRequest
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError, TransportError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.policy import FREE
from vertibayes_protocols.queries import Align, Commit, Meet
from vertibayes_protocols.queries.alignment.align import Recall
from vertibayes_protocols.site.study_people import Placement, StudyPeople
from vertibayes_protocols.storage.meet_counts import ALIGNMENTS, forgive
from vertibayes_protocols.storage.memory import SiteMemory

TWO = Listed({"a": "xy", "b": "z"}, {"a": range(1, 81), "b": range(31, 111)})
ALL = {"a": "xy", "b": "z", "c": "w", "d": "v", "e": "u"}


def remembering(tmp_path, sites="ab"):
    """Return memories in files."""
    return {
        site: SiteMemory(tmp_path / site, randomness=SeededRandomness(site.encode()))
        for site in sites
    }


def align_of(federation, alignment, study=bytes(16)):
    return Align.of(federation.session.role, alignment, DEALER, study)


def full(request=DIGITS, listed=TWO, **changes):
    """Return the alignment of sites, as their descriptions give it."""
    people = {site: len(own) for site, own in listed.lists.items()}
    holders = {name: (site,) for site, names in listed.holders.items() for name in names}
    return replace(request, **changes).alignment(tuple(listed.lists), people, holders)


# ---- the study is of the common people -----------------------------------------------------------


@pytest.mark.parametrize("sites", [2, 3, 5])
def test_tables_are_those_of_the_people_whom_all_sites_hold(sites):
    holders = dict(list(ALL.items())[:sites])
    draw = np.random.default_rng(sites)
    lists = {site: draw.permutation(60)[:52] + 1 for site in holders}
    listed = Listed(holders, lists, everybody=60)
    study = opened(listed.federate())
    assert study.people.people == study.study.records == len(listed.common)
    assert study.people.regions[tuple(holders)] == len(listed.common)
    names = ["x", *[names[0] for names in list(holders.values())[1:]]]
    assert np.array_equal(counted(study, *names), listed.table(*names))
    assert np.array_equal(counted(study, "y"), listed.table("y"))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.sets(st.integers(1, 12), min_size=1), min_size=2, max_size=3),
    st.integers(0, 3),
)
def test_any_lists(lists, padding):
    sites = "abc"[: len(lists)]
    listed = Listed(
        dict(zip(sites, "xyz", strict=False)),
        {site: sorted(own) for site, own in zip(sites, lists, strict=True)},
        everybody=12,
    )
    sizes = {site: len(own) + padding for site, own in listed.lists.items()}
    limits = AlignmentLimits(most_people=dict.fromkeys("abc", 20))
    federation = listed.federate(policy=replace(FREE, fewest_records=1), limits=limits)
    request = AlignmentRequest(rules=("digits",), sizes=sizes, fewest=1)
    if not listed.common:
        with pytest.raises(RecordsDifferError, match="0 people are in common"):
            opened(federation, request)
        return
    study = opened(federation, request)
    assert study.study.records == len(listed.common)
    for role in federation.roles.values():
        texts = [role.data.ids.texts[place] for place in role.data.ids.places]
        assert sorted(int(text) for text in texts) == listed.common


def test_a_padded_list_hides_how_many_people_it_has():
    federation = TWO.federate()
    study = opened(federation, replace(DIGITS, sizes={"a": 90, "b": 100}))
    assert study.people.regions == {("a",): 40, ("b",): 50, ("a", "b"): 50}
    assert np.array_equal(counted(study, "x", "z"), TWO.table("x", "z"))


def test_records_without_a_valid_identifier_are_left_out():
    people = {"a": [*range(1, 61), 0, 0], "b": range(20, 90)}
    listed = Listed({"a": "x", "b": "y"}, people, everybody=100)
    assert listed.data["a"].identifiers.incomplete == 2
    study = opened(listed.federate())
    assert study.study.records == 41
    assert np.array_equal(counted(study, "x", "y"), listed.table("x", "y"))


def test_sites_that_share_a_variable_hold_different_people_of_the_study():
    """Everybody at a, the rows of y at b or at c, and those whom neither holds are missing."""
    lists = {"a": range(1, 101), "b": range(1, 41), "c": range(41, 91)}
    listed = Listed({"a": "x", "b": "y", "c": "y"}, lists)
    federation = listed.federate()
    study = opened(federation)
    assert study.study.records == 100 and study.study.holders["y"] == ("b", "c")
    expected = listed.table("x", "y", people=range(1, 91))
    assert np.array_equal(counted(study, "x", "y"), expected)


def test_sites_that_share_a_variable_and_people_are_told_how_many():
    lists = {"a": range(1, 101), "b": range(1, 44), "c": range(41, 91)}
    listed = Listed({"a": "x", "b": "y", "c": "y"}, lists)
    with pytest.raises(PeopleNotApartError, match="3 people of the study"):
        opened(listed.federate())


def test_after_a_session_a_site_has_all_its_people_again():
    federation = TWO.federate()
    opened(federation)
    assert federation.roles["a"].data.records == 50
    federation.session.close()
    assert federation.roles["a"].data is TWO.data["a"]


def test_sessions_side_by_side_have_their_own_people():
    role = TWO.federate().roles["a"]
    one, other = role.for_session("analyst", b""), role.for_session("analyst", b"")
    alignment = full()
    placement = Placement(2, np.where(np.arange(80) < 2, 1 - np.arange(80), -1))
    one.take(StudyPeople.placed(one.everybody, bytes(16), alignment, placement))
    assert one.data.records == 2 and other.data.records == 80
    assert np.array_equal(one.record_digests, other.record_digests[:2])


# ---- what is remembered --------------------------------------------------------------------------


def test_a_resumed_study_continues_with_the_alignment_that_was_kept(tmp_path):
    first = TWO.federate(memories=remembering(tmp_path))
    study = opened(first, study=bytes(16))
    table = counted(study, "x", "z")
    for role in first.roles.values():
        role.memory.close()
    again = TWO.federate(memories=remembering(tmp_path))
    resumed = opened(again, study=bytes(16))
    assert resumed.people[:2] == (None, {}) and resumed.joined.mark
    assert np.array_equal(counted(resumed, "x", "z"), table)
    assert again.roles["a"].memory.alignments == 1


def test_a_list_that_changed_since_the_alignment_is_refused():
    known = memories("a", "b")
    opened(TWO.federate(memories=known), study=bytes(16))
    changed = Listed(TWO.holders, {**TWO.lists, "b": [*range(31, 110), 1]})
    federation = changed.federate(memories=known)
    with pytest.raises(QueryRefusedError, match="b refuses: the list of people changed since the"):
        opened(federation, study=bytes(16))


def test_a_study_that_was_aligned_otherwise_is_refused():
    known = memories("a", "b")
    opened(TWO.federate(memories=known), study=bytes(16))
    with pytest.raises(QueryRefusedError, match="was aligned with other sites or rules"):
        opened(TWO.federate(memories=known), replace(DIGITS, fewest=20), study=bytes(16))


def test_a_site_that_has_forgotten_the_alignment_is_named():
    known = memories("a", "b")
    opened(TWO.federate(memories=known), study=bytes(16))
    federation = TWO.federate(memories={"a": known["a"], **memories("b")})
    with pytest.raises(RecordsDifferError, match=r"a kept .*, and b did not: have b restore"):
        opened(federation, study=bytes(16))
    assert federation.roles["b"].memory.alignments == 0


def test_a_damaged_file_of_an_alignment_is_refused(tmp_path):
    first = TWO.federate(memories=remembering(tmp_path))
    opened(first, study=bytes(16))
    for role in first.roles.values():
        role.memory.close()
    (tmp_path / "a.alignments" / f"{bytes(16).hex()}.npz").write_bytes(b"damaged")
    with pytest.raises(QueryRefusedError, match="does not have the alignment of a study"):
        opened(TWO.federate(memories=remembering(tmp_path)), study=bytes(16))


# ---- limits --------------------------------------------------------------------------------------


def test_an_alignment_is_counted_on_disk_before_a_point_leaves(tmp_path, monkeypatch):
    begun = {}

    def look(sent, packet):
        if isinstance(sent.message, Keys):
            memory = SiteMemory.read(tmp_path / sent.sender)
            begun.setdefault(sent.sender, memory.alignments)
        return packet

    with packets(monkeypatch, look):
        federation = TWO.federate(memories=remembering(tmp_path))
    opened(federation)
    assert begun == {"a": 1, "b": 1}


def test_after_the_most_alignments_the_owner_must_allow_further_ones(tmp_path):
    for number in range(4):
        federation = TWO.federate(memories=remembering(tmp_path))
        if number < 3:
            opened(federation, study=bytes([number]) * 16)
        else:
            with pytest.raises(
                QueryRefusedError, match=r"a refuses: .* aligned as often as most_al"
            ):
                opened(federation, study=bytes(16)[:15] + b"x")
            forgive(tmp_path / "a.forgiven", ALIGNMENTS)
            forgive(tmp_path / "b.forgiven", ALIGNMENTS)
            opened(federation, study=bytes(16)[:15] + b"x")
        for role in federation.roles.values():
            role.memory.close()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rules": ("exact",)}, "the rules of the identifiers are exact in the study, and digits"),
        ({"fewest": 5}, "the policy here requires fewest_records = 10"),
        ({"sizes": {"a": 79}}, "its list of people is longer than its public size, 79"),
        ({"sizes": {"a": 801}}, "its own list would be padded to 801 people, which takes too much"),
        ({"sizes": {"b": 801}}, "the list of b may have 801 people, which is more than is plausib"),
        ({"everyone": ("a",), "sizes": {"a": 81}}, "its list must have exactly its public size"),
    ],
)  # fmt: skip
def test_what_a_site_refuses(changes, reason):
    federation = TWO.federate()
    assert reason in refusal(federation, align_of(federation, full(**changes)))
    assert not any(role.memory.alignments for role in federation.roles.values())


def test_a_site_that_wants_to_hide_its_people_refuses_level_1():
    federation = TWO.federate(limits=AlignmentLimits(least_level=2))
    assert "least_level = 2" in refusal(federation, align_of(federation, full()))
    meet = Meet.of(federation.session.role, federation.sites, DEALER)
    assert "least_level = 2" in refusal(federation, meet)


def test_a_site_without_identifiers_for_alignments_refuses():
    data = {site: replace(own, identifiers=None) for site, own in TWO.data.items()}
    listed = Listed(TWO.holders, TWO.lists)
    listed.data = data
    federation = listed.federate()
    assert "can add [alignment] to site.toml" in refusal(federation, align_of(federation, full()))


def test_other_keys_than_those_pinned_are_refused_before_anything_is_matched():
    federation = TWO.federate()
    query = replace(align_of(federation, full()), keys=(bytes(32),) * 3)
    assert "another public key" in refusal(federation, query)
    query = replace(align_of(federation, full()), dealer="zoe")
    assert "the dealer pinned here" in refusal(federation, query)


def test_an_alignment_that_is_not_valid_is_refused():
    federation = TWO.federate()
    with pytest.raises(ValueError, match="not a rule of identifiers"):
        replace(full(), rules=("soundex",))
    query = replace(align_of(federation, full()), parties=("a",))
    assert "the query asks other parties" in refusal(federation, query)
    with pytest.raises(ValueError, match="names a party twice"):
        replace(query, dealer="a")
    with pytest.raises(ValueError, match="one key per party"):
        replace(query, keys=query.keys[1:])
    with pytest.raises(ValueError, match="and a session"):
        replace(query, session=b"")
    with pytest.raises(ValueError, match="has no id"):
        replace(query, study=b"")


def test_a_study_commits_the_people_that_were_aligned_for_it():
    federation = TWO.federate()
    federation.session.ask(align_of(federation, full()))
    federation.session.ask(Meet.of(federation.session.role, federation.sites, DEALER))
    study = opened(TWO.federate()).study
    query = Commit.of(replace(study, id=b"another study"))
    assert "its people were aligned for another study" in refusal(federation, query)


def test_lists_with_records_that_match_nobody_are_not_compared_without_an_alignment():
    twice = site_of([1, 2, 2, 3], {"x": np.zeros(3, np.uint8)}, drop=True)
    assert twice.identifiers.dropped == 2
    listed = Listed({"a": "x", "b": "y"}, {"a": range(1, 5), "b": range(1, 5)})
    listed.data["a"] = twice
    federation = listed.federate()
    query = Meet.of(federation.session.role, federation.sites, DEALER)
    assert "records without an identifier of their own" in refusal(federation, query)


# ---- too few people, and parties that leave ------------------------------------------------------


@pytest.mark.parametrize(("people", "common"), [(range(81, 111), 0), (range(76, 111), 5)])
def test_too_few_people_in_common_end_the_study_and_no_site_has_a_result(people, common):
    listed = Listed(TWO.holders, {"a": range(1, 81), "b": people})
    federation = listed.federate()
    said = []
    federation.roles["b"].remark = said.append
    with pytest.raises(RecordsDifferError) as caught:
        opened(federation)
    assert str(caught.value).startswith(
        f"{common} people are in common of the lists (a 80, b {len(people)}), and at least 10 are "
        'needed: compare the rules and the columns: "1" and "01" are different people'
    )
    for role in federation.roles.values():
        assert role.people is None and role.memory.aligned.of(bytes(16)) is None
        assert role.memory.alignments == 1
    assert f"the alignment has {common} people" in said[-1]


def test_the_log_of_a_site_says_which_rule_would_join_more_people():
    lists = {"a": range(1, 31), "b": range(1, 31)}
    listed = Listed({"a": "x", "b": "y"}, lists)
    for site, written in (("a", "{}"), ("b", "{:03d}")):
        codes = {n: listed.codes[n] for n in listed.holders[site]}
        listed.data[site] = site_of(listed.lists[site], codes, written, rules=("exact",))
    federation = listed.federate()
    said = []
    federation.roles["b"].remark = said.append
    with pytest.raises(RecordsDifferError):
        opened(federation, AlignmentRequest())
    assert "has leading zeros, which the rule exact keeps apart: the rule digits joins" in said[-1]


@pytest.mark.parametrize(
    ("written", "shape"),
    [
        ("{}.0", "numbers with a decimal point, of 3 to 4 characters"),
        ("19{:02d}-05-01", "dates that begin with the year, of 10 characters"),
        ("31.5.20{:02d}", "dates that end with the year, of 9 characters"),
    ],
)
def test_keys_of_other_types_are_an_error_and_each_site_logs_what_its_column_has(written, shape):
    listed = Listed({"a": "x", "b": "y"}, {"a": range(1, 31), "b": range(1, 31)})
    for site, own in (("a", "{}"), ("b", written)):
        codes = {n: listed.codes[n] for n in listed.holders[site]}
        listed.data[site] = site_of(listed.lists[site], codes, own, rules=("exact",))
    federation = listed.federate()
    said = {site: [] for site in "ab"}
    for site, role in federation.roles.items():
        role.remark = said[site].append
    with pytest.raises(RecordsDifferError, match=r"^0 people are in common .* what its column has"):
        opened(federation, AlignmentRequest())
    assert "the column 'id' has whole numbers, of 1 to 2 characters" in said["a"][-1]
    assert f"the column 'id' has {shape}" in said["b"][-1]
    assert not any("decimal" in text or "dates" in text for text in said["a"])


def test_a_site_that_leaves_in_the_middle_ends_the_study(monkeypatch):
    def leave(sent, packet):
        if sent.sender == "b" and isinstance(sent.message, Keys):
            raise TransportError("b is gone")
        return packet

    with packets(monkeypatch, leave):
        federation = TWO.federate()
    with pytest.raises(TransportError):
        opened(federation)
    for role in federation.roles.values():
        assert role.people is None and role.memory.aligned.of(bytes(16)) is None


def test_the_analyst_gets_no_part_of_the_key_of_the_sites(monkeypatch):
    with packets(monkeypatch) as seen:
        federation = TWO.federate()
    opened(federation)
    recalls = [sent for sent, _ in seen if isinstance(sent.message, Recall)]
    parts = {sent.receiver: len(sent.message.part) for sent in recalls}
    assert parts == {"a": 32, "b": 32, "analyst": 0}


def test_a_site_that_swaps_its_list_between_the_alignment_and_the_comparison_is_named():
    federation = TWO.federate()
    federation.session.ask(align_of(federation, full()))
    role = federation.roles["b"]
    role.data = role.everybody.people(np.arange(1, 51))
    with pytest.raises(RecordsDifferError, match="the records are not the same at a and b"):
        federation.session.ask(Meet.of(federation.session.role, federation.sites, DEALER))


MIXED = Listed(
    {"a": "x", "b": "z", "c": "y", "d": "y"},
    {"a": range(1, 101), "b": range(1, 101), "c": range(1, 41), "d": range(41, 91)},
)


def garbling(monkeypatch, site):
    """Let the matcher exchange the places of the people of a site."""
    send = _Study.send_marks

    def exchanged(study):
        places = study.places[site]
        inside = np.flatnonzero(places >= 0)
        places[inside] = np.roll(places[inside], 1)
        return send(study)

    monkeypatch.setattr(_Study, "send_marks", exchanged)


def test_sites_that_hold_everybody_notice_a_matcher_that_exchanges_places(monkeypatch):
    true = MIXED.table("x", "z", people=range(1, 101))
    assert np.array_equal(counted(opened(MIXED.federate()), "x", "z"), true)
    garbling(monkeypatch, "b")
    federation = MIXED.federate()
    with pytest.raises(RecordsDifferError, match="not the same at a and b; they are the same at"):
        opened(federation)
    assert federation.roles["a"].memory.meets.of("b").total == 1
    assert federation.roles["a"].memory.meets.of("c").total == 0


def test_without_that_comparison_the_tables_would_be_wrong(monkeypatch):
    """The control."""
    garbling(monkeypatch, "b")
    monkeypatch.setattr(
        "vertibayes_protocols.queries.opening.meet._compares_people", lambda *_: False
    )
    study = opened(MIXED.federate())
    assert not np.array_equal(counted(study, "x", "z"), MIXED.table("x", "z", people=range(1, 101)))


def test_sites_that_hold_some_of_the_people_compare_their_number_alone(monkeypatch):
    """An exchange at c, which shares its variable with d, is not noticed."""
    garbling(monkeypatch, "c")
    study = opened(MIXED.federate())
    assert not np.array_equal(counted(study, "x", "y"), MIXED.table("x", "y", people=range(1, 91)))


@pytest.mark.laws
def test_several_processes_blind_a_long_list(monkeypatch):
    monkeypatch.setattr("vertibayes_protocols.queries.alignment.align.POOL_KEYS", 100)
    federation = TWO.federate()
    federation.roles["a"].processes = 2
    study = opened(federation)
    assert study.people.people == 50
    assert np.array_equal(counted(study, "x", "z"), TWO.table("x", "z"))
