"""A site that went back: what was used up since is forgotten, unless other sites say so.

Site b permits two releases. Its owner restores a backup from before them, or has a new disk. Sites
that compare what they have of each other notice it, and refuse until each owner has accepted it;
the control leaves the comparison out.
"""

import shutil
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.privacy.test_attacks_on_approved_studies import begun, federation_of, releasing
from tests.privacy.test_attacks_on_free_tables import corrected, named_columns
from tests.protocols.network import Parties
from tests.protocols.small import data_of, packets, sealed
from vertibayes_mpc.errors import ProtocolError
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Begin, Describe, Meet
from vertibayes_protocols.queries.opening import heads
from vertibayes_protocols.queries.opening.heads import KnownHead, NewestHead
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.runs_together import Alarm, Last, RunsTogether, accept
from vertibayes_protocols.variables import Family

DATA = data_of(60, a="x", b="y", c="z")
RULE, FAMILIES = Rule("laplace", epsilon=0.5), (Family("x"), Family("y", ("x",)), Family("z"))
DAY = r"\d{4}-\d\d-\d\d"
ONE = rf"a refuses: b has forgotten 1 session with it since {DAY}; b, c refuse too"
ALL = rf"a refuses: b has forgotten 2 sessions with it until {DAY}; b, c refuse too"


class World:
    """Sites with memories and ledgers in files; each release is of another study."""

    def __init__(self, folder, data=DATA):
        self.folder, self.data, self.studies = folder, data, 0

    def path(self, site):
        return self.folder / site / "memory"

    def ledger(self, site):
        return self.folder / site / "ledger.jsonl"

    def release(self, rule=RULE, families=FAMILIES, **policy):
        """Release tables in new processes; the site b has the policy."""
        self.studies += 1  # another number of runs is another contract
        held = []
        for site in self.data:
            (self.folder / site).mkdir(exist_ok=True, parents=True)
        try:
            memories = {site: SiteMemory(self.path(site)) for site in self.data}
            held += memories.values()
            options = {"memories": memories, "runs": self.studies}
            federation, contract = federation_of(self.data, releasing(rule, *families), **options)
            for site, role in federation.roles.items():
                role.ledger = LedgerFile(self.ledger(site), memories[site])
                held.append(role.ledger)
                role.policy = Policy(most_epsilon=1.0 if site == "b" else 100.0, **policy)
            with federation:
                return begun(federation, contract).release(FamilyTables(families, False, rule))
        finally:
            for each in held:
                each.close()

    def back_up(self, site="b"):
        shutil.copytree(self.folder / site, self.folder / f"backup of {site}")

    def restore(self, site="b"):
        shutil.rmtree(self.folder / site)
        shutil.copytree(self.folder / f"backup of {site}", self.folder / site)

    def memory(self, site="b"):
        return SiteMemory.read(self.path(site))

    def accept(self, *sites):
        """Do what the owners' command does."""
        for site in sites:
            together = self.memory(site).together
            alarms = [*together.unknown.values(), *together.lost.values()]
            accept(self.folder / site / "memory.accepted", [alarm.head for alarm in alarms])


@pytest.fixture
def world(tmp_path):
    """Have a backup of b from after the first of its two releases."""
    world = World(tmp_path)
    world.release()
    world.back_up()
    world.release()
    return world


@pytest.fixture
def unsafe(monkeypatch):
    """Have sites that compare nothing."""

    def nothing(site, peers):
        yield from ()
        return ""

    monkeypatch.setattr(heads, "exchange_heads", nothing)


def test_an_old_backup_releases_nothing_however_often_it_is_tried(world):
    world.restore()
    for _ in range(5):
        with pytest.raises(QueryRefusedError, match=ONE):
            world.release()
    assert world.memory().spent.eps == 0.5
    assert "b has forgotten 1 session with it since" in world.ledger("a").read_text()
    assert "it has forgotten 1 session with a since" in world.ledger("b").read_text()


def test_without_the_comparison_an_old_backup_releases_again_and_again(unsafe, world):
    for _ in range(3):
        world.restore()
        world.release()  # the budget of b permits two releases, and has had five


def test_the_newest_backup_ends_the_refusals_at_all_sites(world):
    newest = world.folder / "newest"
    shutil.copytree(world.folder / "b", newest)
    world.restore()
    with pytest.raises(QueryRefusedError):
        world.release()
    assert world.memory("a").together.lost and world.memory("b").together.unknown
    shutil.rmtree(world.folder / "b")
    newest.rename(world.folder / "b")
    with pytest.raises(QueryRefusedError, match=r"b refuses: .* 0 is left of most_epsilon"):
        world.release()
    assert not (world.memory("a").together.lost or world.memory("b").together.unknown)


def test_runs_that_break_are_no_older_memory(tmp_path, monkeypatch):
    world = World(tmp_path)
    world.release()
    for place in range(12):  # at each head, in both directions, and a process that ends then

        def broken(sent, packet, before=[place]):  # noqa: B006
            before[0] -= isinstance(sent.message, KnownHead | NewestHead)
            if before[0] < 0:
                raise ConnectionError
            return packet

        with packets(monkeypatch, broken), pytest.raises(ConnectionError):
            world.release()
    world.back_up()
    world.restore()
    world.release()


def test_messages_that_are_cut_do_not_hide_an_older_memory(world, monkeypatch):
    """Whoever cuts messages lets b try again, and no other site forgets what it has of b."""
    world.restore()

    def cut(sent, packet):
        if isinstance(sent.message, KnownHead | NewestHead) and sent.receiver == "b":
            raise ConnectionError
        return packet

    for _ in range(4):
        with packets(monkeypatch, cut), pytest.raises(ConnectionError):
            world.release()
    with pytest.raises(QueryRefusedError, match="a refuses: b has"):
        world.release()


def test_a_backup_whose_ledger_has_grown_as_long_again_is_noticed(world):
    """A counter would be as high as before: the head is of another chain."""
    newest = len(world.ledger("b").read_bytes())
    world.restore()
    memory = SiteMemory(world.path("b"))
    with closing(memory), closing(LedgerFile(world.ledger("b"), memory)) as ledger:
        while len(world.ledger("b").read_bytes()) < 2 * newest:
            ledger.note("another session", "b", ())
    with pytest.raises(QueryRefusedError, match="a refuses: b has"):
        world.release()


@pytest.mark.parametrize("first", ["a", "b", "c"])
def test_each_owner_must_accept_an_older_memory(world, first):
    world.restore()
    with pytest.raises(QueryRefusedError):
        world.release()
    others = [site for site in "abc" if site != first]
    world.accept(first)
    for site in others:
        with pytest.raises(
            QueryRefusedError, match=rf"^{site} refuses: |[ ,]{site}\b.* refuse too"
        ):
            world.release()
        world.accept(site)
    world.release()
    assert not any(world.memory(s).together.lost for s in "abc")


def test_the_owners_accept_one_older_memory_and_no_other(world):
    """The same backup, restored once more, is noticed again."""
    world.restore()
    with pytest.raises(QueryRefusedError):
        world.release()
    assert len(world.memory().together.unknown) == 2
    world.accept(*"abc")
    accepted = (world.folder / "b" / "memory.accepted").read_bytes()
    world.release()
    world.restore()
    (world.folder / "b" / "memory.accepted").write_bytes(accepted)
    with pytest.raises(QueryRefusedError, match="a refuses: b has"):
        world.release()


def test_a_file_of_accepted_memories_that_cannot_be_read_accepts_nothing(world):
    world.restore()
    (world.folder / "b" / "memory.accepted").write_text("{}")
    with pytest.raises(QueryRefusedError, match="cannot be used: ask its owner") as caught:
        world.release()
    assert "memory.accepted" not in str(caught.value)


def test_a_new_disk_is_noticed_and_new_disks_of_all_sites_are_not(world):
    shutil.rmtree(world.folder / "b")
    with pytest.raises(QueryRefusedError, match=ALL):
        world.release()
    for site in "abc":
        shutil.rmtree(world.folder / site)
    world.release()


def test_after_a_refusal_nothing_else_of_the_session_is_answered(world, monkeypatch):
    """An analyst that does not heed what Meet says asks on."""
    world.restore()

    def asked_on(federation, contract):
        federation.session.ask(Begin.of(contract))
        with pytest.raises(QueryRefusedError):
            federation.session.ask(Meet.of(federation.session.role, contract.site_names, DEALER))
        federation.session.ask(Describe(contract.site_names))

    monkeypatch.setattr("tests.privacy.test_older_memories.begun", asked_on)
    with pytest.raises(QueryRefusedError, match="a refuses: b has forgotten 1 session"):
        world.release()


def test_a_site_that_lies_about_its_head_only_makes_runs_fail(tmp_path, monkeypatch):
    """A false head is a ledger that went back to b; as it learns nothing, b has nothing to hide."""
    world = World(tmp_path)
    world.release()
    last = RunsTogether.last
    monkeypatch.setattr(
        RunsTogether, "last", lambda self, peer: last(self, peer)._replace(head="00" * 32)
    )
    with pytest.raises(QueryRefusedError, match="the ledger of b is not the one of"):
        world.release()


@pytest.mark.parametrize("kind", [KnownHead, NewestHead])
@pytest.mark.parametrize("size", [1, 31, 33])
def test_a_head_of_another_size_names_its_sender(world, monkeypatch, kind, size):
    def resized(sent, packet):
        is_its = sent.sender == "a" and isinstance(sent.message, kind)
        return sealed(packet, replace(sent.message, head=bytes(size))) if is_its else packet

    with packets(monkeypatch, resized), pytest.raises(ProtocolError, match="a: sends a head of an"):
        world.release()


@pytest.mark.parametrize("wrong", [{"day": -1}, {"day": 10**8}, {"sessions": -1}])
def test_a_day_that_cannot_be_names_its_sender(world, monkeypatch, wrong):
    def changed(sent, packet):
        is_its = sent.sender == "a" and isinstance(sent.message, KnownHead)
        return sealed(packet, replace(sent.message, **wrong)) if is_its else packet

    with packets(monkeypatch, changed), pytest.raises(ProtocolError, match="a: sends a number of"):
        world.release()


def test_over_a_network_the_analyst_reads_what_was_forgotten(tmp_path):
    """The session does not break, so that nobody tries again."""
    with Parties(DATA, policy=Policy()) as parties:
        keys = {party: identity.keys.public for party, identity in parties.known.items()}
        contract = Contract(
            sites=tuple((site, keys[site]) for site in "abc"),
            dealer=(DEALER, keys[DEALER]),
            analyst=(ANALYST, keys[ANALYST]),
            variables=("x", "y", "z"),
            learner="a test",
            options={},
            rule=RULE,
        )
        approved = Approved(contract, "A. Owner", "2026-01-31", releasing(RULE, *FAMILIES))
        for site in "abc":
            role = parties.roles[site]
            role.ledger = LedgerFile(tmp_path / site, role.memory)
            role.approvals = {contract.digest: approved}.get
            role.analyst_key = keys[ANALYST]

        def met():
            with parties.session() as session:
                session.ask(Begin.of(contract))
                session.ask(Meet.of(session.role, contract.site_names, DEALER))

        met()
        met()
        parties.roles["b"].memory = memory = SiteMemory()
        parties.roles["b"].ledger = LedgerFile(tmp_path / "new disk", memory)
        for _ in range(2):
            with pytest.raises(QueryRefusedError, match=ALL):
                met()


def test_a_peer_that_says_a_known_head_again_ends_the_alarm():
    """A lie about a head stops runs until the peer says a true one, and not until the owner."""
    together = RunsTogether(None, lambda _: None)
    assert not together.check_own("a", Alarm("aa", ""), is_known=False)
    assert not together.check_own("a", Alarm("", ""), is_known=True), "none is no evidence"
    assert together.check_own("a", Alarm("bb", ""), is_known=True)


def test_what_is_missing_is_said_in_sessions_and_days():
    older, newer = Last("", 4, 739000), Last("aa", 7, 739100)
    assert older.forgotten(newer) == ("3 sessions", "since 2024-04-24")
    assert Last().forgotten(newer) == ("7 sessions", "until 2024-08-02")
    assert newer.forgotten(older) == ("", "of 2024-04-24")


# ---- a new disk, and one value of one person -----------------------------------------------------

CUT = Rule("cut", fewest=10)
PAIRS = tuple(Family(f"v{k:02}", ("v00",)) for k in range(1, 12))


def values_read(world):
    """Release before and after a new disk of a and a correction; return what the difference shows.

    The corrected value is of site a. The owners have approved the study, with the policy of the
    issue's sites: a new memory has nothing to compare the data with.
    """
    before = world.release(CUT, PAIRS)
    shutil.rmtree(world.folder / "a")
    world.data = corrected(world.data, 17)
    after = world.release(CUT, PAIRS)
    changes = {f.child: b - a for f, a, b in zip(PAIRS, before, after, strict=True)}
    return {name: int(np.argwhere(c == 1)[0, 0]) for name, c in changes.items() if (c == 1).any()}


def test_a_new_disk_and_a_correction_show_no_value_of_another_site(tmp_path):
    world = World(tmp_path, named_columns())
    with pytest.raises(QueryRefusedError, match="it has forgotten 1 session with b until"):
        values_read(world)
    assert world.memory("a").released.tables == 0


def test_control_without_the_comparison_a_correction_shows_values_of_another_site(unsafe, tmp_path):
    world = World(tmp_path, named_columns())
    read = values_read(world)
    b = world.data["b"].codes
    theirs = {name: int(b[name][17]) for name in read if name in b}
    assert len(theirs) >= 1 and read.items() >= theirs.items()
