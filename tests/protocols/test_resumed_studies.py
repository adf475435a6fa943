"""A run of an approved study breaks, and continues from its last step; nothing is given twice."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.protocols.small import memories, packets, seeded
from tests.protocols.test_approved_studies import DATA, ORDER, RULE, candidates, contract_of
from tests.randomness import SeededRandomness
from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.approval import Approved, Takes
from vertibayes_protocols.approved_study import open_approved
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.errors import PeerGoneError, QueryRefusedError, TransportError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.open_study import Renewing, waits
from vertibayes_protocols.parties import serve
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import KINDS, Release
from vertibayes_protocols.queries.declared_run import DeclaredRun
from vertibayes_protocols.queries.opening import begin
from vertibayes_protocols.queries.opening.needs import needs_of
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.run_watch import RunWatch
from vertibayes_protocols.session import Session
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.run_record import GIVEN, KEPT, OPEN, RunRecord, Shown
from vertibayes_protocols.transports.local import LocalTransport
from vertibayes_protocols.variables import Family

STUDY = bytes(16)
SOURCE = SeededRandomness()
KEYS = {party: KeyPair.generate(SOURCE) for party in (*DATA, DEALER)}  # those of `seeded`


def steps_by(rule):
    """Choose in three steps, then release by a rule."""

    def steps(study):
        names = tuple(study.variables)
        won = ()
        for at, child in enumerate(names[1:]):
            won += yield Choices((candidates(child, *names[: at + 1]),))
        parents = [(), *((names[w - 1],) if w else () for w in won)]
        yield FamilyTables(tuple(map(Family, names, parents)), False, rule)

    return steps


class World(RunWatch):
    """Sites that remember, whose sessions break where a test says."""

    def __init__(self, rule=RULE, policy=None, runs=1):
        super().__init__()
        policy = policy or Policy()
        self.federation = seeded(DATA, policy=policy, memories=memories(*DATA))
        self.roles, self.steps = self.federation.roles, steps_by(rule)
        self.contract = replace(contract_of(self.federation), rule=rule, runs=runs)
        self.approve(self.contract)
        self.sessions, self.seen, self.kept = 0, [], []
        self.noticed, self.programs = [], {}

    def approve(self, *contracts, **more):
        given = "A. Owner", "2026-01-31", self.steps
        approved = {c.digest: Approved(c, *given, **more) for c in contracts}
        for role in self.roles.values():
            role.approvals = approved.get

    def begin(self):
        """Begin a session, as after all connections broke."""
        self.sessions += 1
        for program in self.programs.values():
            program.close()
        source = SeededRandomness(b"session %d" % self.sessions)
        role = self.federation.session.role
        roles = {n: r.for_session(ANALYST, role.keys.public) for n, r in self.roles.items()}
        for own in roles.values():
            own.randomness = source
        public = {site: role.public_keys[site] for site in DATA}
        roles[DEALER] = DealerRole(DEALER, KEYS[DEALER], public)
        self.programs = {n: serve(r, ANALYST, KINDS) for n, r in roles.items()}
        transport = LocalTransport(ANALYST, self.programs, source)
        return Session(role, transport)

    def broke(self, error, seconds):
        """Note that a session broke, as a RunWatch."""
        self.noticed.append((str(error), seconds))

    def renewing(self, patience=600.0):
        opened = partial(open_approved, contract=self.contract, study=STUDY)
        return Renewing(
            self.begin,
            lambda session: opened(session, seen=self.kept, keep=self.kept.append),
            patience,
            self,
            wait=lambda _: None,
            randomness=SeededRandomness(),
        )

    def run(self, patience=600.0):
        """Run the study to its end, as an honest analyst; return families and tables."""
        return self.finish(self.renewing(patience).first())

    def finish(self, study):
        """Ask the steps of a study that has begun."""
        learner, won = self.steps(study.study), None
        while True:
            step = learner.send(won)
            if isinstance(step, FamilyTables):
                return step.families, study.release(step)
            won = study.choose(step)

    def breaking(self, monkeypatch, *places):
        """Break the sessions before the messages at these places, counted from each break."""
        left = list(places)
        count = 0

        def change(sent, packet):
            nonlocal count
            count += 1
            if left and count > left[0]:
                left.pop(0)
                count = 0
                raise PeerGoneError("b", "cannot be reached")
            return packet

        return packets(monkeypatch, change)

    def runs(self, site="a"):
        return self.roles[site].memory.runs.count(self.contract.digest)

    def record(self, site="a"):
        return self.roles[site].memory.run_of(self.contract.digest, STUDY)


def messages_of(world, monkeypatch):
    """Run a study without a break; return its result and its messages."""
    with packets(monkeypatch) as seen:
        result = world.run()
    return result, [sent.message.kind for sent, _ in seen]


def same(result, other):
    return result[0] == other[0] and all(map(np.array_equal, result[1], other[1]))


@pytest.fixture(scope="module")
def unbroken():
    with pytest.MonkeyPatch.context() as patch:
        return messages_of(World(), patch)


def spread(kinds, every):
    """Return places over a run: of each kind its first message, and each so many messages."""
    firsts = {kinds.index(kind) for kind in kinds}
    return sorted(firsts | set(range(0, len(kinds), every)) | {len(kinds) - 1})


def assert_resumed(world, result, unbroken):
    assert same(result, unbroken[0])
    for site, role in world.roles.items():
        begun, used = world.runs(site)
        assert used == 1 and begun <= 2, "one step at most was begun twice"
        tables = role.memory.released
        assert tables.tables == len(ORDER), "released, and charged, once"
    assert len(world.kept) == 3


@pytest.mark.parametrize("part", range(2))
def test_a_run_that_breaks_anywhere_continues_and_releases_once(part, unbroken, monkeypatch):
    for place in spread(unbroken[1], 120)[part::4]:
        world = World()
        with world.breaking(monkeypatch, place):
            result = world.run()
        assert_resumed(world, result, unbroken)
        assert world.sessions == 2 and len(world.noticed) == 1


@pytest.mark.laws
def test_a_run_that_breaks_before_any_message_continues(unbroken, monkeypatch):
    for place in range(len(unbroken[1])):
        world = World()
        with world.breaking(monkeypatch, place):
            result = world.run()
        assert_resumed(world, result, unbroken)


def test_an_analyst_that_is_killed_resumes_from_its_record_and_that_of_the_sites(
    unbroken, monkeypatch
):
    """Without patience the first break ends the analyst; another one begins with its file."""
    for place in spread(unbroken[1], 240)[::4]:
        world = World()
        with world.breaking(monkeypatch, place), pytest.raises(TransportError):
            world.run(patience=0)
        assert_resumed(world, world.run(), unbroken)


@pytest.mark.parametrize("is_counted_twice", [False, True])
def test_a_resumed_run_needs_what_it_has_not_used_yet(unbroken, monkeypatch, is_counted_twice):
    """The policy allows the bits of one run; the control counts the first two steps twice."""
    whole = World()
    whole.run()
    bits = whole.roles["a"].memory.chosen
    assert bits == whole.record().bits == whole.record().charged
    world = World(policy=Policy(most_choice_bits=bits))
    world.approve(world.contract, takes=Takes(bits))
    if is_counted_twice:
        monkeypatch.setattr(begin, "needs_of", lambda *given, **more: needs_of(*given[:-1], **more))
    answered = [i for i, kind in enumerate(unbroken[1]) if kind == "choose"]
    with world.breaking(monkeypatch, answered[6]):
        if is_counted_twice:
            with pytest.raises(QueryRefusedError, match="are left of most_choice_bits"):
                world.run()
        else:
            assert_resumed(world, world.run(), unbroken)


def bits_of_a_run():
    whole = World()
    whole.run()
    return whole.roles["a"].memory.chosen


def test_a_step_that_broke_counts_twice_and_says_so_where_its_run_no_longer_fits(
    unbroken, monkeypatch
):
    bits = bits_of_a_run()
    world = World(policy=Policy(most_choice_bits=bits))
    world.approve(world.contract, takes=Takes(bits))
    with (
        world.breaking(monkeypatch, unbroken[1].index("masked bits")),
        pytest.raises(QueryRefusedError, match="bits of steps of this run that broke count twice"),
    ):
        world.run()
    broke = world.record("b").charged
    assert broke > 0 == world.record("b").bits
    for role in world.roles.values():
        role.policy = replace(role.policy, most_choice_bits=bits + broke)
    assert_resumed(world, world.run(), unbroken)
    assert world.roles["a"].memory.chosen == bits + broke


def test_a_run_does_not_begin_on_what_another_open_run_still_needs(unbroken):
    """Both were begun once, and the budget ended both after all bits were shown."""
    bits = bits_of_a_run()
    world, other = World(policy=Policy(most_choice_bits=2 * bits - 1)), World()
    other.federation, other.roles = world.federation, world.roles
    other.contract = replace(world.contract, runs=2)
    world.approve(world.contract, other.contract, takes=Takes(bits))
    first = world.renewing().first()
    with pytest.raises(QueryRefusedError, match="runs that are open here need a part of the rest"):
        open_approved(other.begin(), other.contract, b"another study id")
    for program in world.programs.values():
        program.close()
    second = open_approved(other.begin(), other.contract, b"another study id")
    assert same(other.finish(second), unbroken[0]), "nothing is reserved for a session that ended"
    del first


def test_a_run_that_has_ended_reserves_nothing(unbroken):
    bits = bits_of_a_run()
    world, other = World(policy=Policy(most_choice_bits=2 * bits)), World()
    other.federation, other.roles = world.federation, world.roles
    other.contract = replace(world.contract, runs=2)
    world.approve(world.contract, other.contract, takes=Takes(bits))
    world.run()
    second = open_approved(other.begin(), other.contract, b"another study id")
    assert same(other.finish(second), unbroken[0])


def test_declared_queries_that_were_answered_reserve_nothing():
    report = {"kind": "report", "fields": {"asked": {"eps": 0.5}}}
    contract = replace(World().contract, rule=None, queries=(report, report))
    run = DeclaredRun(None, Approved(contract, "A. Owner", "2026-01-31", None))
    assert run.takes({}, 10).cost.eps == 1.0
    run._place = 1
    assert run.takes({}, 10).cost.eps == 0.5


def test_a_resumed_run_asks_no_step_again_that_all_have_seen(unbroken, monkeypatch):
    world = World()
    answered = [i for i, kind in enumerate(unbroken[1]) if kind == "choose"]
    with world.breaking(monkeypatch, answered[6]) as seen:  # three parties: the third step begins
        world.run()
    chosen = [sent for sent, _ in seen if sent.message.kind == "choose" and sent.receiver == "a"]
    assert len(chosen) == 4, "the third step alone is asked twice"
    assert world.runs() == (1, 1), "it had not begun at the sites"


def test_a_step_that_begins_twice_counts_as_a_failed_run_and_its_bits_count_twice(
    unbroken, monkeypatch
):
    plain, world = World(), World()
    plain.run()
    at = unbroken[1].index("masked bits")
    with world.breaking(monkeypatch, at):
        world.run()
    assert world.runs() == (2, 1)
    assert world.roles["a"].memory.chosen > plain.roles["a"].memory.chosen


def test_steps_that_begin_too_often_are_refused(unbroken, monkeypatch):
    world = World(policy=Policy(most_failed_runs=1))
    at = unbroken[1].index("masked bits")
    with (
        world.breaking(monkeypatch, at),
        pytest.raises(QueryRefusedError, match="increase most_failed_runs"),
    ):
        world.run()


def test_a_query_that_breaks_each_time_is_given_up(unbroken, monkeypatch):
    world = World()
    at = unbroken[1].index("masked bits")
    with world.breaking(monkeypatch, *[at] * 9), pytest.raises(TransportError) as caught:
        world.run()
    assert "b: cannot be reached; begun again for" in str(caught.value)
    assert world.sessions == 4


# ---- what ends a run -----------------------------------------------------------------------------


def broken_at(unbroken, monkeypatch, message, further=0):
    """Have a run break before its nth message that asks for a choice, or so many further on."""
    world, places = World(), [i for i, kind in enumerate(unbroken[1]) if kind == "choose"]
    with world.breaking(monkeypatch, places[message] + further), pytest.raises(TransportError):
        world.run(patience=0)
    return world


def test_a_withdrawn_approval_stops_a_resumed_run(unbroken, monkeypatch):
    world = broken_at(unbroken, monkeypatch, 0, further=30)
    world.approve()
    with pytest.raises(QueryRefusedError, match="is not approved here"):
        world.run()


def test_changed_data_refuse_a_resumed_run(unbroken, monkeypatch):
    world = broken_at(unbroken, monkeypatch, 0, further=30)
    data = world.roles["a"].data
    world.roles["a"].data = replace(data, codes={**data.codes, "x": data.codes["x"][::-1].copy()})
    with pytest.raises(QueryRefusedError, match="has changed since it was committed"):
        world.run()


def test_a_site_that_forgot_the_run_is_named(unbroken, monkeypatch):
    world = broken_at(unbroken, monkeypatch, 6)
    world.roles["b"].memory.runs.forget(world.contract.digest)
    with pytest.raises(QueryRefusedError, match="b refuses: it remembers 0 of 2 steps"):
        world.run()


def test_records_that_differ_are_refused(unbroken, monkeypatch):
    world = broken_at(unbroken, monkeypatch, 6)
    shown = world.record("b").shown
    shown[0] = Shown((1 - min(shown[0].won[0], 1),), shown[0].decided)
    with pytest.raises(UnknownFaultyPartyError, match="do not remember the same winners"):
        world.run()


def test_an_analyst_cannot_continue_with_winners_of_its_own(unbroken, monkeypatch):
    """It says that a step was won by another candidate: the sites go on from their own record."""
    world = broken_at(unbroken, monkeypatch, 6)
    study = world.renewing().first()
    learner = world.steps(study.study)
    learner.send(None)
    for shown in world.kept:
        step = learner.send(tuple(1 - min(w, 1) for w in shown.won))
    released = step if isinstance(step, FamilyTables) else learner.send((0,))
    with pytest.raises(QueryRefusedError, match="is not the next step"):
        study.session.ask(Release.of(study.joined, released))


def test_a_step_that_shows_other_winners_the_second_time_ends_the_run(unbroken, monkeypatch):
    """Site b has not seen the winners of the step; whoever lies in the second execution is seen."""
    world = broken_at(unbroken, monkeypatch, 3)  # the first step was shown to all
    world.record("b").shown.clear()
    shown = world.record("a").shown
    lie = Shown((1 - min(shown[0].won[0], 1),), shown[0].decided)
    shown[0] = lie
    world.kept[:] = [lie]
    with pytest.raises(UnknownFaultyPartyError, match="has other winners: one of them lies"):
        world.run()
    assert world.record("a") is None, "the run cannot be resumed"


# ---- the release ---------------------------------------------------------------------------------

RULES = [Rule("cut", fewest=5), Rule("laplace", epsilon=0.8), Rule("exact")]


def places_of_release(world, monkeypatch):
    kinds = messages_of(world, monkeypatch)[1]
    return kinds, kinds.index("release")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_an_answer_that_was_lost_is_given_again_byte_for_byte(rule, monkeypatch):
    kinds, _ = places_of_release(World(rule), monkeypatch)
    world, shares = World(rule), {}
    last = len(kinds) - 1
    assert kinds[last] == "share"
    with world.breaking(monkeypatch, last) as seen, pytest.raises(TransportError):
        world.run(patience=0)
    for sent, _ in seen:
        if sent.message.kind == "share" and sent.receiver == ANALYST:
            shares[sent.sender] = sent.message.values
    assert shares, "one site has sent its share"
    assert world.runs() == (1, 1) and world.record().state == GIVEN
    spent = world.roles["a"].memory.spent
    with packets(monkeypatch) as seen:
        world.run()
    again = {s.sender: s.message.values for s, _ in seen if s.message.kind == "kept share"}
    assert set(again) == set(DATA)
    assert all(np.array_equal(again[site], share) for site, share in shares.items())
    assert world.runs() == (1, 1) and world.roles["a"].memory.spent == spent
    assert world.roles["a"].memory.released.tables == len(ORDER)
    assert not [s for s, _ in seen if s.message.kind == "release" and s.receiver == DEALER]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_a_release_that_breaks_before_all_have_counted_is_computed_again(rule, monkeypatch):
    kinds, at = places_of_release(World(rule), monkeypatch)
    world = World(rule)
    counted = kinds.index("counted")
    with world.breaking(monkeypatch, counted) as seen, pytest.raises(TransportError):
        world.run(patience=0)
    assert "share" not in [s.message.kind for s, _ in seen[at:] if s.receiver == ANALYST]
    assert world.runs("b") == (1, 0) and world.roles["b"].memory.spent.eps == 0
    world.run()
    assert world.runs() == (2, 1) and world.roles["a"].memory.spent.eps in (0.0, 0.8)


def test_a_run_that_has_released_computes_nothing_again(monkeypatch):
    """The same study, asked to release again: no other tables, no new noise, and no other run."""
    world = World(Rule("laplace", epsilon=0.8))
    first = world.run()
    assert same(first, world.run()), "the same noise"
    study = world.renewing().first()
    learner, won = world.steps(study.study), None
    while isinstance(step := learner.send(won), Choices):
        won = study.choose(step)
    with pytest.raises(QueryRefusedError, match="its tables were released"):
        study.session.ask(Release.of(study.joined, step))
    other = replace(step, rule=Rule("exact"))
    with pytest.raises(QueryRefusedError, match="is not the next step"):
        study.session.ask(Release.of(study.joined, other, again=True))
    assert world.runs() == (1, 1)


def test_a_site_that_kept_no_share_refuses_to_give_it_again(unbroken, monkeypatch):
    world = World()
    at = unbroken[1].index("release")
    with world.breaking(monkeypatch, at), pytest.raises(TransportError):
        world.run(patience=0)
    study = world.renewing().first()
    learner, won = world.steps(study.study), None
    while isinstance(step := learner.send(won), Choices):
        won = study.choose(step)
    with pytest.raises(QueryRefusedError, match="has kept no share"):
        study.session.ask(Release.of(study.joined, step, again=True))


def lost(monkeypatch, rule=RULE):
    """Return a run whose answer was lost after all sites had kept their shares."""
    kinds, _ = places_of_release(World(rule), monkeypatch)
    world = World(rule)
    with world.breaking(monkeypatch, kinds.index("share")), pytest.raises(TransportError):
        world.run(patience=0)
    return world


def test_a_run_that_an_older_release_began_is_not_resumed(monkeypatch):
    """A memory of wire version 8 does not say of which steps its shares and winners are."""
    world = lost(monkeypatch)
    for site in DATA:
        world.record(site).asked = b""
    with pytest.raises(QueryRefusedError, match="takes other steps"):
        world.run()


def test_a_share_of_other_tables_is_not_given_for_those_that_this_release_derives(monkeypatch):
    world = lost(monkeypatch)

    def other_steps(study):
        steps, won = steps_by(RULE)(study), None
        while not isinstance(step := steps.send(won), FamilyTables):
            won = yield step
        yield replace(step, families=step.families[::-1])

    world.steps = other_steps
    world.approve(world.contract)
    with pytest.raises(QueryRefusedError, match="takes other steps"):
        world.run()


def test_winners_of_other_portions_are_not_taken_for_those_of_this_release(monkeypatch):
    world = lost(monkeypatch)

    def other_steps(study):
        first, second, third, *_ = study.variables
        yield Choices((candidates(second, first), candidates(third, first)))
        yield FamilyTables((Family(first, ()),), False, RULE)

    world.steps = other_steps
    world.approve(world.contract)
    study = world.renewing().first()
    with pytest.raises(QueryRefusedError, match="takes other steps"):
        study.release(FamilyTables((Family("x", ()),), False, RULE))


# ---- records and waits ---------------------------------------------------------------------------


def test_a_memory_keeps_the_record_of_a_run(tmp_path):
    path, digest, other = tmp_path / "memory", bytes(32), bytes(31) + b"1"
    memory = SiteMemory(path)
    memory.commit(STUDY, {})
    memory.seed(STUDY)
    memory.runs.begin(digest, STUDY)
    memory.runs.begin_step(digest, 0, b"first")
    memory.runs.end_step(digest, Shown((1, 0), (True, False)), 7)
    memory.runs.begin_step(digest, 1, b"second")
    memory.runs.keep_share(digest, b"label", np.arange(3, dtype=np.uint8))
    memory.close()
    memory = SiteMemory(path)
    record = memory.run_of(digest, STUDY)
    assert record.shown == [Shown((1, 0), (True, False))] and record.begun == 2
    assert record.state == KEPT and record.share.tolist() == [0, 1, 2]
    assert record.share.dtype == np.uint8 and record.label == b"label"
    assert memory.run_of(digest, b"another study") is None and memory.run_of(other, STUDY) is None
    memory.runs.begin_step(digest, 1, b"second")
    assert memory.runs.count(digest) == (2, 0) and memory.run_of(digest, STUDY).state == OPEN
    memory.close()


@pytest.mark.parametrize("wrong", [{"state": 7}, {"begun": 0}, {"share": ["<f8", ""]}])
def test_a_damaged_record_is_refused(wrong):
    record = RunRecord(STUDY, 1, b"first", [Shown((1,), (True,))])
    assert RunRecord.of_json(record.as_json()).shown == record.shown
    with pytest.raises((ValueError, KeyError)):
        RunRecord.of_json({**record.as_json(), **wrong})


def test_waits_double_up_to_half_a_minute_and_vary():
    several = waits(SeededRandomness())
    seconds = [next(several) for _ in range(8)]
    longest = [1, 2, 4, 8, 16, 30, 30, 30]
    assert all(most / 2 <= s <= most for s, most in zip(seconds, longest, strict=True))
    assert seconds != longest


def test_patience_ends_with_the_last_cause_and_the_time():
    now, errors = [0.0], iter("abcdefghijklmnopqrstuvwxyz")

    def begin():
        raise PeerGoneError(next(errors), "cannot be reached")

    renewing = Renewing(
        begin, None, 60.0, wait=lambda s: now.__setitem__(0, now[0] + s), clock=lambda: now[0]
    )
    with pytest.raises(TransportError, match=r"^[d-h]: cannot be reached; begun again for \d+ s"):
        renewing.renew(PeerGoneError("z", "is gone"))
    assert 20 < now[0] <= 60
