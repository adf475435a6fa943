"""Alignment at level 2: what is kept and resumed, what a site refuses, and errors."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.protocols.hidden import FREE, LEVEL_2, random_lists
from tests.protocols.small import packets
from vertibayes_mpc.alignment.messages import Links
from vertibayes_mpc.errors import TooFewPeopleError, UnknownFaultyPartyError
from vertibayes_protocols.alignment import AlignmentLimits
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError
from vertibayes_protocols.queries import Commit
from vertibayes_protocols.queries.alignment.align import Align
from vertibayes_protocols.queries.columns.publish import Publish, RecordNoise
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Rows, Variable

STUDY = bytes(range(16))
FAMILIES = [Family("u"), Family("v", ("u",)), Family("w", ("u", "v"))]


def memories(lists, folder):
    return {site: SiteMemory(folder / f"{site}.memory") for site in lists.people}


def close(kept):
    for memory in kept.values():
        memory.close()


def tables(lists, federation, study=STUDY, rows=Rows()):
    """Open the study; return its tables in the order of `FAMILIES`."""
    opened = lists.open(federation, study=study)
    revealed = [t for part in opened.reveal(FAMILIES, missing=True, rows=rows) for t in part]
    by_family = {frozenset(t.family.members): t for t in revealed}
    return opened, [by_family[frozenset(f.members)].table for f in FAMILIES]


def resumed(lists, folder, later=None, **options):
    """Open a study, stop all sites, and open it again."""
    kept = memories(lists, folder)
    with lists.federate(memories=kept) as federation:
        first = tables(lists, federation)
    close(kept)
    kept = memories(lists, folder)
    try:
        with (later or lists).federate(memories=kept, **options) as federation:
            return first, tables(later or lists, federation)
    finally:
        close(kept)


def refused(call):
    with pytest.raises(QueryRefusedError) as caught:
        call()
    return caught.value


# ---- the study is resumed ------------------------------------------------------------------------


def test_a_study_that_is_resumed_after_a_restart_has_the_same_people_and_tables(tmp_path):
    lists = random_lists(1, sites=3)
    (first, before), (second, after) = resumed(lists, tmp_path)
    assert first.people.people == len(lists.common) and second.people.people is None
    assert second.study == first.study and second.joined.mark == first.joined.mark
    assert all(map(np.array_equal, before, after))
    assert all(map(np.array_equal, after, lists.plain.tables(FAMILIES, missing=True)))
    folder = tmp_path / "a.memory.alignments"
    assert [path.stat().st_mode & 0o77 for path in folder.iterdir()] == [0]


def test_a_study_is_not_resumed_with_another_list(tmp_path):
    lists, later = random_lists(1, sites=3), random_lists(1, sites=3)
    later.people["b"] = later.people["b"][::-1]
    error = refused(lambda: resumed(lists, tmp_path, later))
    assert error.site == "b" and "the list of people changed since the study was" in error.reason


def test_a_study_is_not_resumed_with_other_values(tmp_path):
    lists, later = random_lists(1, sites=3), random_lists(1, sites=3)
    outside = np.setdiff1d(later.people["a"], later.common)[0]  # the site does not know that
    later.codes["u"] = later.codes["u"].copy()
    later.codes["u"][outside] = (later.codes["u"][outside] + 1) % 2
    error = refused(lambda: resumed(lists, tmp_path, later))
    assert error.site == "a" and "the column 'u' has changed" in error.reason


def test_a_site_that_lost_its_shares_is_named(tmp_path):
    lists, kept = random_lists(1, sites=3), None
    kept = memories(lists, tmp_path)
    with lists.federate(memories=kept) as federation:
        tables(lists, federation)
    close(kept)
    for path in (tmp_path / "b.memory.alignments").iterdir():
        path.unlink()
    kept = memories(lists, tmp_path)
    with lists.federate(memories=kept) as federation:
        with pytest.raises(RecordsDifferError, match=r"a, c kept the alignment .* and b did not"):
            tables(lists, federation)
    close(kept)


def test_damaged_shares_are_refused(tmp_path):
    lists = random_lists(1, sites=2)
    kept = memories(lists, tmp_path)
    with lists.federate(memories=kept) as federation:
        tables(lists, federation)
    close(kept)
    (path,) = (tmp_path / "b.memory.alignments").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    kept = memories(lists, tmp_path)
    with lists.federate(memories=kept) as federation:
        error = refused(lambda: tables(lists, federation))
    assert error.site == "b" and "does not have the alignment of a study" in error.reason
    close(kept)


def test_sites_with_shares_of_two_alignments_are_noticed():
    lists = random_lists(1, sites=2)
    with lists.federate() as federation, lists.federate() as other:
        tables(lists, federation)
        tables(lists, other)
        federation.roles["b"].memory.aligned = other.roles["b"].memory.aligned
        for role in federation.roles.values():
            role.leave_people()
        for role, known in ((federation.roles["b"], other.roles["b"]),):
            role.memory._key = known.memory._key
        with pytest.raises(UnknownFaultyPartyError, match="a and b hold the rows of different"):
            tables(lists, federation)


def test_masks_of_the_same_shares_differ_in_each_session(tmp_path):
    lists = random_lists(1, sites=2)
    seen = []
    for _ in range(2):
        kept = memories(lists, tmp_path)
        with lists.federate(memories=kept) as federation:
            tables(lists, federation)
            seen.append(federation.roles["a"].holder.masked["codes", 0, 0])
        close(kept)
    assert (seen[0] != seen[1]).mean() > 0.9


# ---- record sets ---------------------------------------------------------------------------------


def test_record_sets_of_unknown_people_are_checked_by_their_places():
    lists = random_lists(2, sites=2, people=200)
    with lists.federate() as federation:
        study, _ = tables(lists, federation, rows=Rows(1, 0, 40))
        error = refused(lambda: [*study.reveal(FAMILIES, missing=True, rows=Rows(1, 0, 45))])
    assert "these records would single out fewer than 10" in error.reason


def changed(lists, **people):
    """Return the same lists, except those of some sites."""
    return replace(lists, people={**lists.people, **people})


def second_study(lists, later):
    """Ask for tables of a study, then for those of another study with later lists."""
    with lists.federate() as federation:
        tables(lists, federation)
        kept = {site: role.memory for site, role in federation.roles.items()}
    with later.federate(memories=kept) as federation:
        return tables(later, federation, study=bytes(16))


@pytest.mark.parametrize("few", [1, 9])
def test_a_list_from_which_few_people_went_is_not_aligned_again(few):
    lists = random_lists(3, sites=2, people=200)
    inside = np.flatnonzero(np.isin(lists.people["a"], lists.common))
    later = changed(lists, a=np.delete(lists.people["a"], inside[:few]))
    error = refused(lambda: second_study(lists, later))
    assert error.site == "a"
    assert "fewer than 10 people came to its list, or left it" in error.reason


def test_a_list_that_did_not_change_or_by_enough_people_is_aligned_again():
    lists = random_lists(3, sites=2, people=200)
    inside = np.flatnonzero(np.isin(lists.people["a"], lists.common))
    later = changed(lists, a=np.delete(lists.people["a"], inside[:12]))
    for again in (lists, later):
        _, after = second_study(lists, again)
        assert all(map(np.array_equal, after, again.plain.tables(FAMILIES, missing=True)))


def test_a_site_notices_that_another_list_lost_one_person_by_the_number_of_people():
    lists = random_lists(3, sites=2, people=200)
    inside = np.flatnonzero(np.isin(lists.people["b"], lists.common))
    later = changed(lists, b=np.delete(lists.people["b"], inside[0]))
    with lists.federate() as federation:
        tables(lists, federation)
        kept = {"a": federation.roles["a"].memory}  # b lies: it forgets
    with later.federate(memories=kept) as federation:
        error = refused(lambda: tables(later, federation, study=bytes(16)))
    assert error.site == "a" and "fewer than 10 records more or less" in error.reason


# ---- mistakes ------------------------------------------------------------------------------------


def test_a_list_of_which_few_people_are_left_out_ends_the_study():
    lists = random_lists(4, sites=3)
    outside = np.setdiff1d(np.arange(120), lists.common)
    lists = changed(lists, **dict.fromkeys("abc", lists.common))
    lists = changed(lists, b=np.append(lists.common, outside[:3]))
    with lists.federate() as federation:
        with pytest.raises(TooFewPeopleError, match="b: fewer than 10 people of the list"):
            lists.open(federation)
        assert not federation.roles["a"].memory.aligned._kept


def test_too_few_people_in_common_are_told_with_the_sizes():
    lists = random_lists(4, sites=2)
    lists = changed(lists, a=np.arange(60), b=np.arange(55, 120))
    with lists.federate() as federation:
        with pytest.raises(RecordsDifferError, match="5 people are in common of the lists"):
            lists.open(federation)


def test_a_column_at_two_sites_is_named():
    lists = random_lists(4, sites=2)
    lists.names["b"] = [*lists.names["b"], "u"]
    with lists.federate() as federation:
        with pytest.raises(ValueError, match="'u' is at a, b, and at level 2"):
            lists.open(federation)


def asked(lists, federation, **changes):
    """Return what a study would ask, with other parts, after the first `Describe`."""
    owner = {name: site for site, own in lists.names.items() for name in own}
    owner = {name: owner[name] for name in lists.variables}
    people = {site: len(people) for site, people in lists.people.items()}
    holders = {name: (site,) for name, site in owner.items()}
    alignment = LEVEL_2.alignment(federation.sites, people, holders)
    alignment = replace(alignment, **{k: v for k, v in changes.items() if k in ALIGNMENT})
    carried = CarriedColumns(lists.variables, owner, 7, max(alignment.size.values()))
    carried = replace(carried, **{k: v for k, v in changes.items() if k in COLUMNS})
    query = Align.of(federation.session.role, alignment, "dealer", STUDY, carried)
    return replace(query, **{k: v for k, v in changes.items() if k not in ALIGNMENT | COLUMNS})


ALIGNMENT, COLUMNS = {"everyone", "apart", "fewest", "sizes"}, {"variables", "owners", "size"}


def of_one(name, *states, site):
    return {"variables": {name: Variable(name, states)}, "owners": {name: site}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (of_one("u", "0", "9", site="a"), "it shows no variable 'u'"),
        ({"everyone": ("a",)}, "all sites must hold everybody"),
        ({"apart": (("a", "b"),)}, "all sites must hold everybody"),
        ({"fewest": 9}, "fewest_records = 10"),
        ({"parties": ("a", "b")}, "asks other parties"),
    ],
)
def test_rows_that_a_site_cannot_share_are_refused(changes, reason):
    lists = random_lists(5, sites=2)
    with lists.federate() as federation:
        site, query = federation.roles["a"], asked(lists, federation, **changes)
        error = refused(lambda: consider(site, query))
        assert error.site == "a" and reason in error.reason
        assert not site.ledger.facts and site.memory.alignments == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"variables": {}, "owners": {}}, "has no column"),
        (of_one("u", "0", "1", site="zoe"), "is at none of its sites"),
        (of_one("u", "0", site="a"), "fewer than two states"),
        ({"variables": {"u": Variable("v", ("0", "9"))}, "owners": {"u": "a"}}, "another's name"),
        ({"owners": {}}, "one of no site"),
        ({"size": 1000}, "that of the longest list"),
        ({"carried": None}, "has columns at level 2"),
    ],
)
def test_rows_that_no_alignment_has_make_no_query(changes, reason):
    lists = random_lists(5, sites=2)
    with lists.federate() as federation, pytest.raises(ValueError, match=reason):
        asked(lists, federation, **changes)


def test_the_owner_can_limit_what_shares_take():
    lists = random_lists(5, sites=2)
    with lists.federate(policy=replace(FREE, most_stored=100)) as federation:
        assert "most_stored = 100" in refused(lambda: lists.open(federation)).reason


@pytest.mark.parametrize("small", ["a", "b", "dealer"])
def test_each_party_limits_the_memory_of_an_alignment_before_a_key_is_sent(small, monkeypatch):
    """Of 100,000 people and 20 columns: one party's owner allows 32 MiB of memory."""
    lists = random_lists(5, sites=2)
    for name in (f"u{place}" for place in range(14)):
        lists.variables[name] = replace(lists.variables["u"], name=name)
        lists.codes[name] = lists.codes["u"]
        lists.names["b"].append(name)
    limits = AlignmentLimits(most_people=dict.fromkeys("ab", 100_000))
    less = replace(FREE, most_memory=1 << 25)
    dealer = partial(DealerRole, policy=less) if small == "dealer" else DealerRole

    def of_dealer(*args, **options):
        return dealer(*args[:3], **options)

    monkeypatch.setattr("vertibayes_protocols.federation.DealerRole", of_dealer)
    with packets(monkeypatch) as seen:
        federation = lists.federate(limits=limits)
    with federation:
        if small in federation.roles:
            federation.roles[small].policy = less
        query = asked(lists, federation, sizes=(("a", 100_000), ("b", 100_000)))
        assert len(query.carried.variables) == 20
        error = refused(lambda: federation.session.ask(query))
        assert error.site == small and "allows most_memory = 33,554,432" in error.reason
        assert not any(site.memory.alignments for site in federation.roles.values())
        assert not any(isinstance(sent.message, Links) for sent, _ in seen)


def test_a_study_of_other_columns_or_another_alignment_is_refused():
    lists = random_lists(5, sites=2)
    with lists.federate() as federation:
        study = lists.open(federation, study=STUDY).study
        other = Variable("u", ("0", "1", "9"), study.variables["u"].missing)
        for changes, reason in (
            ({"variables": {**study.variables, "u": other}}, "did not carry 'u'"),
            ({"alignment": bytes(32)}, "is not one of the records that were aligned"),
            ({"alignment": b""}, "is not one of the records|no code of missing"),
            ({"records": study.records - 1}, "is not one of the records"),
            ({"most_indicators": 127}, "carried columns of up to 7 indicators"),
            ({"holders": {**study.holders, "u": ("a",)}}, "did not carry 'u'"),
            ({"id": bytes(16)}, "aligned for another study"),
        ):
            with pytest.raises((QueryRefusedError, ValueError), match=reason):
                federation.session.ask(Commit.of(replace(study, **changes)))


def test_naive_bayes_of_columns_is_refused_for_people_whom_no_site_knows():
    lists = random_lists(5, sites=2, missing=False)
    target, *others = lists.variables.values()
    holders = {site: [v.name for v in others if v.name in lists.names[site]] for site in "ab"}
    counts = np.bincount(lists.pooled.codes[target.name], minlength=len(target.states))
    split = Split.of(Schema(target, {v.name: v for v in others}), holders, counts.tolist())
    with lists.federate() as federation:
        lists.open(federation)
        error = refused(lambda: federation.session.ask(Publish.of(split, RecordNoise(1.0))))
        assert "naive Bayes over columns needs sites that know" in error.reason


def test_shares_do_not_outlive_the_session():
    lists = random_lists(5, sites=2)
    with lists.federate() as federation:
        study = lists.open(federation, study=STUDY).study
        site = federation.roles["a"]
        later = site.for_session("analyst", bytes(32))
        assert later.hidden is None and later.records == len(lists.people["a"])
        site.leave()
        assert site.hidden is None
        assert (
            "align them first" in refused(lambda: federation.session.ask(Commit.of(study))).reason
        )
