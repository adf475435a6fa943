"""Ways around the comparison of ledgers: each ends before anything is used up."""

import os
import shutil
from contextlib import ExitStack, closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.privacy.test_older_memories import World
from tests.protocols.listed import DIGITS, Listed, opened
from tests.protocols.small import data_of, packets, sealed, seeded
from tests.protocols.test_approved_predictions import APPROVED, contract_of, predict
from tests.protocols.test_predict import DATA
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Begin
from vertibayes_protocols.queries.opening.heads import KnownHead, exchange_heads
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.runs_together import MOST_AHEAD


def in_files(folder, data, run, start=seeded, **options):
    """Run a session of sites with memories and ledgers in files; return how many aligned."""
    with ExitStack() as held:
        for site in data:
            (folder / site).mkdir(exist_ok=True)
        memories = {s: held.enter_context(closing(SiteMemory(folder / s / "memory"))) for s in data}
        federation = start(memories=memories, **options)
        for site, role in federation.roles.items():
            role.ledger = LedgerFile(folder / site / "ledger", memories[site])
            held.callback(role.ledger.close)
        try:
            with federation:
                run(federation)
        finally:
            counts = [memory.alignments for memory in memories.values()]
        return counts


# ---- an analyst that leaves Meet out -------------------------------------------------------------


class WithoutMeet:
    """A session of an analyst that asks all but Meet."""

    def __init__(self, session):
        self._session = session

    def __getattr__(self, name):
        return getattr(self._session, name)

    def ask(self, query):
        return None if query.kind == "meet" else self._session.ask(query)


def open_freely(federation, session):
    return open_study(session, federation.sites, DEALER, study=os.urandom(16))


def predict_as_approved(federation, session):
    contract = replace(contract_of(federation), runs=1 + isinstance(session, WithoutMeet))
    for role in federation.roles.values():
        role.approvals = {contract.digest: Approved(contract, "A", "2026-01-31", None)}.get
    session.ask(Begin.of(contract))
    assert len(predict(open_freely(federation, session), APPROVED))


@pytest.mark.parametrize("run", [open_freely, predict_as_approved])
def test_records_without_identifiers_are_not_committed_before_ledgers_are_compared(tmp_path, run):
    policy = replace(ALLOW_ALL, free_tables=run is open_freely, most_scores=100)

    def start(**options):
        return seeded(DATA, policy=policy, **options)

    in_files(tmp_path, DATA, lambda f: run(f, f.session), start)
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(QueryRefusedError, match="were not compared with those of b"):
        in_files(tmp_path, DATA, lambda f: run(f, WithoutMeet(f.session)), start)


# ---- alignments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 2])
def test_no_alignment_begins_at_a_new_disk(tmp_path, level):
    world = Listed({"a": "x", "b": "y"}, {"a": range(1, 81), "b": range(1, 81)})
    alignment = replace(DIGITS, level=level)

    def run(federation):
        opened(federation, alignment, study=os.urandom(16))

    assert in_files(tmp_path, "ab", run, world.federate) == [1, 1]
    shutil.rmtree(tmp_path / "b")
    for _ in range(2):
        with pytest.raises(QueryRefusedError, match="a refuses: b has forgotten 1 session with it"):
            in_files(tmp_path, "ab", run, world.federate)
    for site, begun in (("a", 1), ("b", 0)):
        assert SiteMemory.read(tmp_path / site / "memory").alignments == begun


# ---- counts that lie, and sessions at once -------------------------------------------------------


def test_a_false_number_of_sessions_is_bounded_and_blames_nobody(tmp_path, monkeypatch):
    world = World(tmp_path)
    world.release()

    def lie(sent, packet):
        is_its = isinstance(sent.message, KnownHead) and (sent.sender, sent.receiver) == ("a", "b")
        return sealed(packet, replace(sent.message, sessions=10**9)) if is_its else packet

    with packets(monkeypatch, lie):
        world.release()
    with pytest.raises(QueryRefusedError, match="b refuses: the release costs"):
        world.release()  # the budget of b permits two releases
    assert world.memory().together.last("a").sessions <= MOST_AHEAD + 3


def site_of(folder, name, peer):
    """Return as much of a site as compares ledgers."""
    (folder / name).mkdir(exist_ok=True)
    memory = SiteMemory(folder / name / "memory")
    ledger = LedgerFile(folder / name / "ledger", memory)
    public = {peer: peer.encode() * 32}
    return SimpleNamespace(
        party=name, public_keys=public, former_keys={}, memory=memory, ledger=ledger,
        heads_of=frozenset(), went_back="", remark=lambda _: None,
    )  # fmt: skip


def step(program, inbox=None):
    try:
        return program.send(inbox)
    except StopIteration as ended:
        return ended.value


class Exchange:
    """A session of a and b, message by message."""

    def __init__(self, *sites):
        self.programs = [
            exchange_heads(SimpleNamespace(**vars(site)), [peer])
            for site, peer in zip(sites, "ba", strict=True)
        ]
        self.sent = [step(program) for program in self.programs]

    def go_on(self):
        (a, b), (at_a, at_b) = self.sent, self.programs
        self.sent = [step(at_a, {"b": b.outbox["a"]}), step(at_b, {"a": a.outbox["b"]})]
        return self.sent


def test_a_session_that_took_long_brings_no_older_head(tmp_path):
    a, b = site_of(tmp_path, "a", "b"), site_of(tmp_path, "b", "a")
    a.ledger.note("begun", "a", ()), b.ledger.note("begun", "b", ())
    first = Exchange(a, b)
    first.go_on(), first.go_on()
    slow = Exchange(a, b)
    slow.go_on()  # the newest head of b is on its way
    for number in range(3):
        b.ledger.note(f"table {number}", "b", ())
    quick = Exchange(a, b)
    quick.go_on()
    assert quick.go_on() == ["", ""]
    newest = b.ledger.head.hex()
    assert slow.go_on() == ["", ""]
    assert a.memory.together.last("b").head == newest
    for site in (a, b):
        site.ledger.close(), site.memory.close()


# ---- other keys ----------------------------------------------------------------------------------


class Keyed(World):
    """Sites with other keys in each epoch; `is_signed`: the old key signed the new one."""

    def __init__(self, folder, monkeypatch):
        super().__init__(folder, data_of(60, a="x", b="y", c="z"))
        self.epoch, self.is_signed, self._former = b"one", False, {}
        real = "tests.privacy.test_older_memories.federation_of"
        monkeypatch.setattr(real, self._start)

    def _start(self, *args, **options):
        from tests.privacy.test_attacks_on_approved_studies import federation_of

        federation, contract = federation_of(*args, seed=self.epoch, **options)
        for role in federation.roles.values():
            role.former_keys = self._former if self.is_signed else {}
        self._former = {peer: [role.keys.public] for peer, role in federation.roles.items()}
        return federation, contract


@pytest.fixture
def keyed(tmp_path, monkeypatch):
    world = Keyed(tmp_path, monkeypatch)
    world.release()
    world.epoch = b"two"
    return world


def test_a_new_key_that_the_old_one_signed_continues(keyed):
    keyed.is_signed = True
    keyed.release()
    assert keyed.memory("a").together.last("b").sessions == 2


@pytest.mark.parametrize("is_signed", [False, True])
def test_a_new_disk_with_a_new_key_is_noticed(keyed, is_signed):
    keyed.is_signed = is_signed
    shutil.rmtree(keyed.folder / "b")
    with pytest.raises(QueryRefusedError, match=r"b has (forgotten 1|a key that)"):
        keyed.release()
    assert keyed.memory().together.unknown and keyed.memory("a").together.lost["b"]


def test_a_key_that_was_enrolled_anew_waits_for_each_owner(keyed):
    with pytest.raises(QueryRefusedError, match="b has a key that its key in the last session did"):
        keyed.release()
    keyed.accept(*"ab")
    with pytest.raises(QueryRefusedError, match="c refuses"):
        keyed.release()
    keyed.accept("c")
    keyed.release()
