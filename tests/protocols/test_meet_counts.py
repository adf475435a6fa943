"""Which comparisons of two sites' lists count as guesses, when anybody may cut their messages."""

from collections import defaultdict, deque

import pytest

from tests.protocols.small import meet, memories, refusal, seeded
from tests.protocols.test_meet import ANOTHER, query_of, with_ids
from vertibayes_mpc.cpace import Confirmation
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.opening.meet import Met
from vertibayes_protocols.storage.meet_counts import Count, forgive, read_forgiven
from vertibayes_protocols.storage.memory import SiteMemory

SITES = "ab"


def federation_of(kept, most=100, **ids):
    parts = {site: with_ids(**ids)[site] for site in SITES}
    policy = Policy(most_failed_meets=most, free_tables=True)
    return seeded(parts, memories=kept, policy=policy)


def cut_after(federation, delivered, silent=()):
    """Run a comparison of the sites; deliver some messages, and end all programs there.

    A silent site sends no codes: it has its guess confirmed, and says nothing.
    """
    query = query_of(federation)
    delivered += 4  # what the sites have of each other's ledgers
    programs = {site: query.run_site(federation.roles[site], None, None) for site in SITES}
    mail = defaultdict(deque)
    steps = {site: next(program) for site, program in programs.items()}
    sent = []  # kept, so that no later round has the identity of one of them
    for _ in range(20):
        for site, step in list(steps.items()):
            if not any(step is earlier for earlier in sent):
                sent.append(step)
                for receiver, message in step.outbox.items():
                    is_code = isinstance(message, Confirmation)
                    if not isinstance(message, Met) and not (is_code and site in silent):
                        mail[site, receiver].append(message)
            there = {peer: mail[peer, site] for peer in step.expect}
            if all(there.values()) and delivered >= len(there):
                delivered -= len(there)
                inbox = {peer: queue.popleft() for peer, queue in there.items()}
                try:
                    steps[site] = programs[site].send(inbox)
                except StopIteration:
                    del steps[site]
    for program in programs.values():
        program.close()


def counts(kept):
    return {(s, p): kept[s].meets.of(p) for s in SITES for p in SITES if s != p}


# ---- cut messages --------------------------------------------------------------------------------


@pytest.mark.parametrize("delivered", [0, 1])
def test_a_session_that_ends_before_a_code_leaves_is_no_guess(delivered):
    kept = memories(*SITES)
    for _ in range(3):
        cut_after(federation_of(kept), delivered)
    assert set(counts(kept).values()) == {Count()}


def test_only_the_site_that_confirms_first_counts_a_cut_and_apart_from_lists_that_differ():
    """The points are delivered, and no code: before, each such session counted at both sites."""
    kept = memories(*SITES)
    for _ in range(3):
        cut_after(federation_of(kept), 2)
    assert counts(kept) == {("a", "b"): Count(0, 3), ("b", "a"): Count()}


def test_a_right_code_forgets_what_was_cut_before_whatever_follows():
    """The code of a is there and right, and the answer is cut: b counts nothing, a one."""
    kept = memories(*SITES)
    cut_after(federation_of(kept), 2)
    cut_after(federation_of(kept), 3)
    assert counts(kept) == {("a", "b"): Count(0, 2), ("b", "a"): Count()}
    cut_after(federation_of(kept), 4)
    assert set(counts(kept).values()) == {Count()}


def test_sessions_side_by_side_have_no_further_guesses():
    """Before, each of eight sessions was considered when none had counted its comparison yet."""
    kept = memories(*SITES)
    role = federation_of(kept, most=3).roles["b"]
    query, begun = query_of(federation_of(kept)), []
    for _ in range(3):
        session = role.for_session("analyst", role.analyst_key)
        consider(session, query)
        begun.append(query.run_site(session, None, None))
        next(begun[-1])
    last = role.for_session("analyst", role.analyst_key)
    with pytest.raises(QueryRefusedError, match="too many comparisons with a have failed"):
        consider(last, query)
    last.shared = type(last.shared)()
    consider(last, query)  # the control: a session that knows of no other
    begun.pop().close()
    consider(role, query)  # a comparison that ends before a code leaves is no guess


@pytest.mark.parametrize("guesser", SITES)
def test_a_list_that_differs_counts_at_both_sites_as_different(guesser):
    kept = memories(*SITES)
    cut_after(federation_of(kept, **{guesser: ANOTHER}), 4)
    assert set(counts(kept).values()) == {Count(1, 0)}


def test_a_guess_that_is_confirmed_and_not_answered_counts():
    """b has the code of a, compares it, and says nothing."""
    kept = memories(*SITES)
    cut_after(federation_of(kept, b=ANOTHER), 3, silent="b")
    assert kept["a"].meets.of("b") == Count(0, 1)


def test_a_wrong_code_is_counted_before_it_is_answered(tmp_path):
    """On disk: b reads the code of a, and its memory has the count when its own code leaves."""
    memory = SiteMemory(tmp_path / "memory")
    kept = {**memories("a"), "b": memory}
    federation = federation_of(kept, a=ANOTHER)
    query = query_of(federation)
    programs = {site: query.run_site(federation.roles[site], None, None) for site in SITES}
    points = {site: next(program) for site, program in programs.items()}
    for _ in range(2):  # what the sites have of each other's ledgers
        points = {s: programs[s].send({p: points[p].outbox[s]}) for s, p in ("ab", "ba")}
    code = programs["a"].send({"b": points["b"].outbox["a"]}).outbox["b"]
    assert not programs["b"].send({"a": points["a"].outbox["b"]}).outbox
    assert memory.meets.of("a") == Count() and not (tmp_path / "memory").exists()
    answer = programs["b"].send({"a": code}).outbox["a"]
    assert isinstance(answer, Confirmation)
    assert SiteMemory.read(tmp_path / "memory").meets.of("a") == Count(1, 0)
    memory.close()


def test_honest_sites_meet_after_a_hundred_cuts_once_the_owner_has_forgiven_them(tmp_path):
    memory = SiteMemory(tmp_path / "memory")
    kept = {"a": memory, **memories("b")}
    for _ in range(5):
        cut_after(federation_of(kept, most=5), 2)
    federation = federation_of(kept, most=5)
    assert "too many comparisons with b" in refusal(federation, query_of(federation))
    forgive(tmp_path / "memory.forgiven", "b")
    meet(federation)  # by the same running process
    assert memory.meets.of("b") == Count()
    cut_after(federation_of(kept, most=5), 2)
    meet(federation_of(kept, most=5))
    cut_after(federation_of(kept, most=5), 2)
    assert memory.meets.of("b") == Count(0, 1), "what was forgiven once is not forgiven again"
    memory.close()
    assert SiteMemory.read(tmp_path / "memory").meets.of("b") == Count(0, 1)


def test_comparisons_are_forgiven_after_the_clock_was_set_back(tmp_path, monkeypatch):
    path = tmp_path / "memory.forgiven"
    for now in (2000, 1000):
        monkeypatch.setattr("vertibayes_protocols.clock.time_ns", lambda now=now: now)
        forgive(path, "b")
    assert read_forgiven(path) == {"b": 2001}


def test_forgiven_comparisons_that_others_may_write_are_not_used(tmp_path):
    memory = SiteMemory(tmp_path / "memory")
    federation = federation_of({"a": memory, **memories("b")})
    path = tmp_path / "memory.forgiven"
    forgive(path, "b")
    path.chmod(0o666)
    with pytest.raises(QueryRefusedError) as caught:
        consider(federation.roles["a"], query_of(federation))
    assert "chmod" not in caught.value.reason and "chmod go-w" in caught.value.detail
    memory.close()


# ---- what the owner reads ------------------------------------------------------------------------


def test_the_owner_reads_with_which_site_lists_differ_and_how_many_comparisons_are_left():
    kept, said = memories(*SITES), []
    federation = federation_of(kept, most=9, b=ANOTHER)
    federation.roles["a"].remark = said.append
    with pytest.raises(RecordsDifferError):
        meet(federation)
    text = "the list of people differs from that of b: 8 more may fail (most_failed_meets)"
    assert said == [text]
    assert text in [fact.what for fact in federation.roles["a"].ledger.facts]


def test_the_owner_reads_that_a_comparison_was_not_answered():
    kept, said = memories(*SITES), []
    federation = federation_of(kept, most=9)
    federation.roles["a"].remark = said.append
    cut_after(federation, 2)
    assert said == [
        "b did not answer a comparison of the lists of people: 8 more may fail (most_failed_meets)"
    ]


def test_the_counts_of_a_refusal_are_for_the_owner_alone():
    kept = memories(*SITES)
    for _ in range(2):
        cut_after(federation_of(kept, most=3), 2)
    cut_after(federation_of(kept, most=3, b=ANOTHER), 4)
    federation = federation_of(kept, most=3)
    with pytest.raises(QueryRefusedError) as caught:
        consider(federation.roles["a"], query_of(federation))
    assert not any(character.isdigit() for character in caught.value.reason)
    assert "1 comparisons with b have found different lists" in caught.value.detail
    assert "b did not answer 2" in caught.value.detail
