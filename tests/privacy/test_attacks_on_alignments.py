"""Attacks by alignments: what an analyst gets by several, in a session or side by side."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.hidden import LEVEL_2, random_lists
from tests.protocols.listed import DIGITS, Listed, counted
from tests.randomness import SeededRandomness
from vertibayes_mpc.alignment.match import _Study
from vertibayes_mpc.errors import ProtocolError
from vertibayes_mpc.randomness import KEY_BYTES
from vertibayes_protocols.alignment import AlignmentRequest
from vertibayes_protocols.engine import answer, consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.queries import Align, Commit
from vertibayes_protocols.queries.alignment.align import Recall
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Rows

THREE = Listed(
    {"a": "x", "b": "y", "c": "z"},
    {"a": range(1, 81), "b": range(31, 111), "c": range(32, 120)},  # c lacks person 31
)
OF_TWO, OF_THREE = b"a study of two..", b"a study of three"


def opened(federation, sites, study):
    return open_study(federation.session, sites, DEALER, alignment=DIGITS, study=study)


def again(federation, data=THREE):
    """End the session; return another with the same memories."""
    kept = {site: role.memory for site, role in federation.roles.items()}
    federation.session.close()
    return data.federate(memories=kept)


# ---- a kept alignment that is recalled under another study's columns -----------------------------


def difference_of_two_studies():
    """Return the difference of two tables, of studies whose people differ by one person."""
    federation = THREE.federate()
    before = counted(opened(federation, ("a", "b"), OF_TWO), "x", "y")
    federation = again(federation)
    study = opened(federation, ("a", "b", "c"), OF_THREE)
    holders = {"x": ("a",), "y": ("b",)}
    pair = DIGITS.alignment(("a", "b"), {"a": 80, "b": 80}, holders)
    federation.session.ask(Align.of(federation.session.role, pair, DEALER, OF_TWO))
    return before - counted(study, "x", "y")  # the sites take the people of two for those of three


def test_a_site_leaves_its_study_when_it_aligns_other_people():
    with pytest.raises(QueryRefusedError, match="it has not committed to this study"):
        difference_of_two_studies()


def test_a_site_that_stays_in_its_study_shows_the_row_of_one_person(monkeypatch):
    monkeypatch.setattr(SiteRole, "leave_study", lambda _: None)
    row = [THREE.codes[name][30] for name in "xy"]
    assert np.argwhere(difference_of_two_studies()).tolist() == [row]


def test_without_another_alignment_the_difference_of_one_person_is_refused():
    federation = THREE.federate()
    counted(opened(federation, ("a", "b"), OF_TWO), "x", "y")
    study = opened(again(federation), ("a", "b", "c"), OF_THREE)
    with pytest.raises(QueryRefusedError, match="would single out fewer than 10"):
        counted(study, "x", "y")


def test_sites_that_align_other_people_compare_their_lists_again():
    federation = THREE.federate()
    opened(federation, ("a", "b", "c"), OF_THREE)
    holders = {"x": ("a",), "y": ("b",)}
    pair = DIGITS.alignment(("a", "b"), {"a": 80, "b": 80}, holders)
    federation.session.ask(Align.of(federation.session.role, pair, DEALER, OF_TWO))
    study = opened(THREE.federate(), ("a", "b"), OF_TWO).study
    with pytest.raises(QueryRefusedError, match="were not compared"):
        federation.session.ask(Commit.of(study))


# ---- sessions side by side -----------------------------------------------------------------------


def begin_side_by_side(sessions):
    """Begin an alignment in each of some sessions at once; return how many one site counts."""
    federation = Listed({"a": "x", "b": "y"}, {"a": range(1, 41), "b": range(1, 41)}).federate()
    holders = {"x": ("a",), "y": ("b",)}
    alignment = DIGITS.alignment(("a", "b"), {"a": 40, "b": 40}, holders)
    site, waiting = federation.roles["a"], []
    for number in range(sessions):
        query = Align.of(federation.session.role, alignment, DEALER, bytes([number]) * 16)
        session = site.for_session("analyst", b"")
        session.heads_of = frozenset("b")  # whose ledger it has compared
        program = answer(session, consider(session, query))
        next(program)  # it sends `Recall`; the peer answers no session before all have begun
        waiting.append(program)
    try:
        for program in waiting:
            program.send({"b": Recall(False, bytes(KEY_BYTES))})
    finally:
        begun = site.memory.alignments
        for program in waiting:
            program.close()
    return begun


def test_sessions_side_by_side_have_no_more_alignments_than_one():
    assert begin_side_by_side(3) == 3
    with pytest.raises(ProtocolError, match="as often as most_alignments = 3 allows"):
        begin_side_by_side(4)


def test_a_site_that_checks_only_when_it_agrees_begins_more(monkeypatch):
    monkeypatch.setattr(
        "vertibayes_protocols.queries.alignment.align.check_spent", lambda _: None
    )  # nobody had begun
    assert begin_side_by_side(5) == 5


# ---- level 2 after another study -----------------------------------------------------------------

FAMILIES = [Family("u"), Family("v", ("u",))]
LEVEL_1 = AlignmentRequest(1, ("digits",))


def tables(lists, federation, alignment, study):
    opened = lists.open(federation, alignment=alignment, study=study)
    parts = opened.reveal(FAMILIES, missing=True, rows=Rows())
    found = {frozenset(t.family.members): t.table for part in parts for t in part}
    return [found[frozenset(f.members)] for f in FAMILIES]


def before_and_after(lists, later, first, second, kept):
    """Ask for tables of two studies; the sites in `kept` remember the first."""
    with lists.federate(randomness=SeededRandomness(b"first")) as federation:
        before = tables(lists, federation, first, b"1" * 16)
        memories = {site: federation.roles[site].memory for site in kept}
    with later.federate(memories=memories, randomness=SeededRandomness(b"third")) as federation:
        return before, tables(later, federation, second, b"2" * 16)


def one_more():
    """Return lists, and the lists after one person came to b whom a holds."""
    lists = random_lists(3, sites=2, people=200)
    came = np.setdiff1d(lists.people["a"], lists.people["b"])[0]
    later = {**lists.people, "b": np.append(lists.people["b"], came)}
    return lists, replace(lists, people=later), came


ORDERS = [(LEVEL_2, LEVEL_2), (LEVEL_2, LEVEL_1), (LEVEL_1, LEVEL_2)]


@pytest.mark.parametrize("levels", ORDERS)
def test_studies_of_one_person_more_are_refused_in_each_order_of_levels(levels):
    lists, later, _ = one_more()
    with pytest.raises(QueryRefusedError, match=r"fewer than 10 (people|records)"):
        before_and_after(lists, later, *levels, kept="ab")
    with pytest.raises(QueryRefusedError, match="a refuses: fewer than 10 records more or less"):
        before_and_after(lists, later, *levels, kept="a")  # b lies


def test_without_sizes_a_study_of_one_person_more_shows_the_row_of_this_person(monkeypatch):
    monkeypatch.setattr(SiteMemory, "is_near_known", lambda *_: False)
    lists, later, came = one_more()
    before, after = before_and_after(lists, later, LEVEL_1, LEVEL_2, kept="ab")
    codes = [int(lists.codes[name][came]) for name in "uv"]
    assert np.argwhere(after[1] != before[1]).tolist() in ([codes], [codes[::-1]])


@pytest.mark.parametrize("older", [False, True])
def test_sizes_of_record_sets_outlive_a_process(tmp_path, older):
    lists, later, _ = one_more()
    memory = SiteMemory(tmp_path / "a")
    with lists.federate(memories={"a": memory}) as federation:
        tables(lists, federation, LEVEL_1, b"1" * 16)
    memory.close()
    if older:
        without_sizes(tmp_path / "a")
    memory = SiteMemory(tmp_path / "a")
    with later.federate(memories={"a": memory}) as federation:
        with pytest.raises(QueryRefusedError, match="a refuses: fewer than 10 records more or les"):
            tables(later, federation, LEVEL_2, b"2" * 16)
    memory.close()


def without_sizes(path):
    """Write a memory as before level 2: it has the people of its studies, and no sizes of sets."""
    with np.load(path) as file:
        arrays = dict(file)
    notes = json.loads(arrays["notes"].tobytes())
    del notes["sizes"]
    with path.open("wb") as file:
        np.savez(file, **{**arrays, "notes": np.frombuffer(json.dumps(notes).encode(), np.uint8)})


# ---- rows of two sites that hold one person ------------------------------------------------------

OVERLAP = Listed(
    {"a": "x", "b": "y", "c": "y"}, {"a": range(1, 101), "b": range(1, 44), "c": range(41, 91)}
)


def counted_twice():
    """Share y between b and c, which both hold three people, in a study that says nothing of it."""
    federation = OVERLAP.federate()
    request = replace(DIGITS, everyone=("a",), apart=())
    study = open_study(federation.session, ("a", "b", "c"), DEALER, alignment=request)
    return counted(study, "x", "y")


def test_sites_share_a_variable_only_if_the_alignment_keeps_their_people_apart():
    with pytest.raises(QueryRefusedError, match="hold the variable 'y' and may hold the same peo"):
        counted_twice()


def test_without_the_check_of_people_two_codes_of_one_person_are_counted(monkeypatch):
    monkeypatch.setattr(
        "vertibayes_protocols.queries.opening.commit_checks._check_apart", lambda *_: None
    )
    assert counted_twice().sum() == OVERLAP.table("x", "y", people=range(1, 91)).sum() + 3


# ---- what stays: an analyst that lies as the matcher, at level 2 ---------------------------------


class OneLess(_Study):
    """Leaves one person of the study out, at all sites alike."""

    def __init__(self, *args):
        super().__init__(*args)
        self.people -= 1
        for places in self.places.values():
            places[places == self.people] = -1


def test_a_matcher_that_lies_exchanges_one_person_of_unknown_people_for_another(monkeypatch):
    """Sites see the number of people alone; the most alignments bound how often it can lie."""
    monkeypatch.setattr("vertibayes_mpc.alignment.match._Study", OneLess)
    lists = random_lists(3, sites=2, people=200)
    before, after = before_and_after(lists, lists, LEVEL_2, LEVEL_2, kept="ab")
    change = (after[1] - before[1]).ravel()
    assert sorted(change[change != 0]) == [-1, 1]  # the rows of two people


def test_at_level_1_sites_notice_a_matcher_that_leaves_somebody_out(monkeypatch):
    lists = random_lists(3, sites=2, people=200)
    before_and_after(lists, lists, LEVEL_1, LEVEL_1, kept="ab")  # the control
    with lists.federate() as federation:
        tables(lists, federation, LEVEL_1, b"1" * 16)
        memories = {site: federation.roles[site].memory for site in "ab"}
    monkeypatch.setattr("vertibayes_mpc.alignment.match._Study", OneLess)
    with lists.federate(memories=memories) as federation:
        with pytest.raises(QueryRefusedError, match="would single out fewer than 10"):
            tables(lists, federation, LEVEL_1, b"2" * 16)
