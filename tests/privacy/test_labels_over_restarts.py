"""No label is used twice, over kills and restarts of all parties with one study and real files.

Each value that a site or the dealer sends under a labelled stream is noted with the stream: whose
(keys are the same in all runs) and which label. In one process, so that a study can be killed
before every single message that it sends; what survives is what lies in the sites' memory files.
Variants in which labels recur are told by the same notes.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from tests.protocols.small import data_of
from tests.randomness import SeededRandomness
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.masked_tables import site as counting
from vertibayes_mpc.masked_tables.block import Block, Masked
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.sharing import Share
from vertibayes_mpc.shuffled_tables import ShufflePlan
from vertibayes_mpc.shuffled_tables.plan import Shuffled
from vertibayes_mpc.shuffled_tables.site import _Chains
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import DEALER, federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.queries.tables.counting import Cost, kept_costs
from vertibayes_protocols.queries.tables.masked_costs import MaskedCosts, choose_shuffled
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.local import EnvelopedPackets
from vertibayes_protocols.variables import Family

PEOPLE = TextColumn.of(f"person {place}" for place in range(40))
DATA = {site: replace(found, ids=PEOPLE) for site, found in data_of(a="xy", b="z", c="w").items()}
STUDY = bytes(range(16))
# What is asked by turns: the same terms in other queries, and in other places of them.
ASKED = (
    [Family("x", ("z",)), Family("w", ("x", "y", "z")), Family("y")],
    [Family("y", ("w",)), Family("z", ("w", "x")), Family("w", ("x", "y", "z"))],
    [Family("z", ("w", "x"))],
)
CHANGED = "x"  # the column of site a that is another after a restart


class Killed(BaseException):
    """Ends all parties where they are: they write and send nothing more."""


class Notes:
    """What was sent under which stream, over all runs; `limit` messages of a run are let out."""

    def __init__(self, monkeypatch):
        self.values, self.twice = {}, []
        self.limit, self.sent, self.shares, self.run = None, 0, {}, 0
        self._watch_terms(monkeypatch)
        self._watch_shares(monkeypatch)
        self._watch_codes(monkeypatch)
        self._watch_messages(monkeypatch)

    def note(self, value, *label):
        """Note a value; one is sent to several receivers, and nothing is sent in two runs."""
        once = self.run, hashlib.sha256(value.tobytes()).digest()
        if self.values.setdefault(label, once) != once:
            self.twice.append(label)

    def _watch_terms(self, monkeypatch):
        """Note each term that a site sends under its mask, and each part of one."""
        message = Block._message

        def watched(block, terms):
            masks = block.masks
            for term in terms:
                masked = block._kind(block.site.party, terms) is Masked
                name = masks._label("remask" if masked else "extend", term)
                value = (block.masked if masked else block.part)(term)
                self.note(value, block.site.party, name, block.block)
            return message(block, terms)

        monkeypatch.setattr(Block, "_message", watched)

    def _watch_shares(self, monkeypatch):
        zero_share = counting.zero_share

        def watched(party, peers, ring, name, cells):
            self.shares[party] = name
            return zero_share(party, peers, ring, name, cells)

        monkeypatch.setattr(counting, "zero_share", watched)

    def _watch_codes(self, monkeypatch):
        """Note what a site opens of shuffled tables: orders and zero shares are of the query."""
        opened = _Chains.opened

        def watched(chains):
            message = opened(chains)
            self.note(message.values, chains.me, "codes", chains.plan.label)
            return message

        monkeypatch.setattr(_Chains, "opened", watched)

    def _watch_messages(self, monkeypatch):
        pack, places = EnvelopedPackets.pack, {}

        def watched(packets, sent):
            if self.sent == self.limit:
                raise Killed
            self.sent += 1
            sender, message = sent.sender, sent.message
            if isinstance(message, Labelled):
                link = packets, sender, sent.receiver, type(message), message.label
                place = places[link] = places.get(link, -1) + 1
                self.note(message.values, sender, *link[2:], place)
            elif isinstance(message, Share):
                self.note(message.values, sender, "share", self.shares[sender])
            return pack(packets, sent)

        monkeypatch.setattr(EnvelopedPackets, "pack", watched)

    @property
    def commitments(self):
        """The labels under which columns were committed."""
        return {label[3] for label in self.values if label[2] is Columns}


@pytest.fixture
def notes(monkeypatch):
    return Notes(monkeypatch)


@pytest.fixture
def all_shuffled(monkeypatch):
    """Count each table by shuffle, as wide ones are."""
    monkeypatch.setattr(MaskedCosts, "shuffle", lambda *_: Cost(0, 0))
    for kept in (kept_costs, choose_shuffled):
        kept.cache_clear()
    yield
    for kept in (kept_costs, choose_shuffled):
        kept.cache_clear()


def run(notes, folder, asked, *, limit=None, data=DATA, randomness=SystemRandomness):
    """Start all parties from their files, ask, and kill them before message `limit`.

    Returns
    -------
    tables : list of ndarray, or None if they were killed
    """
    notes.sent, notes.limit, notes.run = 0, limit, notes.run + 1
    with ExitStack() as held:
        memories = {site: SiteMemory(folder / site) for site in data}
        for found in memories.values():
            held.callback(found.close)
        keys = SeededRandomness(b"the parties' keys, which are files too")
        federation = held.enter_context(federate(data, memories=memories, randomness=keys))
        for role in federation.roles.values():
            role.randomness = randomness()
        names = {"study": STUDY, "block_rows": 16}
        try:
            counter = SecureCounter(open_study(federation.session, tuple(data), DEALER, **names))
            return counter.tables(asked)
        except Killed:
            return None


def changed():
    """Return the data with one record of a column of site a other than it was."""
    codes = DATA["a"].codes[CHANGED].copy()
    codes[0] = (codes[0] + 1) % 3
    return {**DATA, "a": replace(DATA["a"], codes={**DATA["a"].codes, CHANGED: codes})}


def pooled(data, asked):
    columns = {n: c for found in data.values() for n, c in found.codes.items()}
    variables = {n: v for found in data.values() for n, v in found.variables.items()}
    return PlainCounter(replace(data["a"], variables=variables, codes=columns)).tables(asked)


def assert_same(tables, wanted):
    assert len(tables) == len(wanted)
    assert all((one == other).all() for one, other in zip(tables, wanted, strict=True))


@pytest.mark.laws
def test_a_study_killed_before_each_of_its_messages_uses_no_label_twice(notes, tmp_path):
    limit, tables = 0, None
    while tables is None:
        tables = run(notes, tmp_path, ASKED[limit % len(ASKED)], limit=limit)
        limit += 1
    assert limit > 40, "there are more messages than that"
    for asked in ASKED:
        assert_same(run(notes, tmp_path, asked), pooled(DATA, asked))
    assert notes.twice == [] and len(notes.commitments) > 40
    assert len(notes.values) > 100


@pytest.mark.laws
def test_shuffled_tables_of_a_killed_study_use_no_label_twice(notes, all_shuffled, tmp_path):
    limit, tables = 0, None
    while tables is None:
        tables = run(notes, tmp_path, ASKED[limit % len(ASKED)], limit=limit)
        limit += 1
    for asked in ASKED:
        assert_same(run(notes, tmp_path, asked), pooled(DATA, asked))
    assert notes.twice == []
    assert sum(label[2] is Shuffled for label in notes.values) > 10
    assert len({label[-1] for label in notes.values if "codes" in label}) > 5


@pytest.mark.laws
def test_a_changed_column_is_not_committed_wherever_the_study_was_killed(notes, tmp_path):
    """From when its site has remembered it on: before, nothing was sent of it."""
    (tmp_path / "whole").mkdir()
    run(notes, tmp_path / "whole", ASKED[0])
    refused, messages = 0, notes.sent
    for limit in range(0, messages, 4):
        folder = tmp_path / str(limit)
        folder.mkdir()
        run(notes, folder, ASKED[0], limit=limit)
        with closing(SiteMemory(folder / "a")) as memory:
            known = bool(memory._committed)
        if known:
            with pytest.raises(QueryRefusedError, match=f"a refuses: .*{CHANGED!r} has changed"):
                run(notes, folder, ASKED[0], data=changed())
            refused += 1
        else:
            assert_same(run(notes, folder, ASKED[0], data=changed()), pooled(changed(), ASKED[0]))
    assert 5 < refused < messages // 4 and notes.twice == []


def test_a_site_that_lost_its_memory_hides_its_columns_under_other_labels(notes, tmp_path):
    assert run(notes, tmp_path, ASKED[0]) is not None
    (tmp_path / "a").unlink()
    assert run(notes, tmp_path, ASKED[0], data=changed()) is not None
    assert notes.twice == [] and len(notes.commitments) == 2


# ---- what these notes would tell -----------------------------------------------------------------


def test_orders_of_queries_without_ids_and_numbers_are_noted(
    notes, all_shuffled, tmp_path, monkeypatch
):
    monkeypatch.setattr(ShufflePlan, "label", bytes(32))
    for _ in range(2):
        assert run(notes, tmp_path, ASKED[0]) is not None
    assert any("codes" in label for label in notes.twice)
    assert any(Shuffled in label for label in notes.twice)


def test_ids_that_are_not_drawn_anew_are_noted(notes, tmp_path):
    """As they once were not: under one label the others' factors can be other ones."""
    for _ in range(2):
        assert run(notes, tmp_path, ASKED[0], randomness=SeededRandomness) is not None
    assert any(Columns in label for label in notes.twice) and len(notes.commitments) == 1
