"""What sites that lie about shuffled codes read, with the analyst: outside the model, documented.

The first of a chain puts the joint codes together. If it adds a tag to each record's code, which
only its accomplice, the analyst, takes off again, it knows whose code each opened one is.

- Codes are opened modulo the smallest power of two that holds the table. The opened values divided
  by the honest sites' joint codes are the tags that there can be: less than twice the codes of the
  first's own columns, all of which it could give its records by lying about its columns.
- Where records drop out there is a second vector, of 48 bits, with room for tags: a code is opened
  only if its tag is 0, at each honest site.
- So the first of a chain can have any records left out: it reads a record by leaving out all
  others. The honest sites see how few are complete. A site that says that its values are missing
  does the same, but once for all tables.
- The last of a chain tells the others the masked tags. It knows their masks, and can say that all
  are 0. By itself it has the codes of incomplete records opened too, in an order that it does not
  know. With the first, who tags the records, it reads all records of an honest site between them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.worlds import plain_tables, world
from vertibayes_mpc.commitments import Selection
from vertibayes_mpc.masked_tables import Group
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Expect, Round
from vertibayes_mpc.scheduler import run_all
from vertibayes_mpc.shuffled_tables import ShufflePlan, count_shuffled, deal_shuffled
from vertibayes_mpc.shuffled_tables.plan import Codes, Streams, Tags
from vertibayes_mpc.shuffled_tables.site import _Chains

RECORDS, STATES = 200, 8
OWN = 3  # the codes of the lying site's column
SECRET = np.random.default_rng(6).integers(0, STATES, RECORDS)
ZEROS = np.zeros(RECORDS, np.uint8)


def accomplice(plan):
    """Take what the sites open, and do not count it."""
    inbox = yield Round({}, {site: Expect(Codes) for site in plan.parties})
    return inbox


def opened(columns):
    """Count one table of all columns; return the opened codes in their order, and the plan's sites.

    Returns
    -------
    codes : ndarray, or None if the sites do not open the same number
    sealed : ndarray of shape (len(codes),)
        The places, among the records that are kept at the chain's end, of the opened ones: any
        site knows them.
    sent : dict
        The messages to the analyst, by site.
    """
    w = world(columns, RECORDS, block_rows=256)
    w.commit()
    plan = ShufflePlan(w.commitments, (tuple(range(len(columns))),), Selection(w.commitments))
    (table,) = plan.tables
    programs = {s: count_shuffled(w.holders[s], plan, "analyst") for s in plan.parties}
    programs["dealer"] = deal_shuffled(w.dealer_keys, plan)
    programs["analyst"] = accomplice(plan)
    sent = run_all(programs)[0]["analyst"]
    kept = {int(message.complete[0]) if table.dropping else RECORDS for message in sent.values()}
    if len(kept) > 1:
        return None, None, sent
    shares = [table.ring.unpack(message.values, RECORDS)[: min(kept)] for message in sent.values()]
    codes = table.ring.reduce(np.sum(shares, axis=0, dtype=table.ring.dtype))
    seal = Streams(w.holders["a liar"].sites_key, plan).seal(table, len(codes))
    return codes.astype(np.int64), seal, sent


def tagging(monkeypatch, tags):
    """Have the first of the chain add tags to the joint codes: `tags` times the table's cells."""
    joint_codes = _Chains.joint_codes

    def tagged(chains, table):
        codes = joint_codes(chains, table)
        lies = chains.me == "a liar"
        return codes + (tags * table.cells * lies).astype(codes.dtype)

    monkeypatch.setattr(_Chains, "joint_codes", tagged)


# ---- tags beside the codes -----------------------------------------------------------------------

COLUMNS = [(OWN - 1, False, {"a liar": ZEROS}), (STATES - 1, False, {"honest": SECRET})]
CELLS = OWN * STATES
ROOM = 2 ** (CELLS - 1).bit_length() // STATES  # tags that the ring tells apart


def test_a_wide_ring_has_room_for_a_tag_for_each_record(monkeypatch):
    """What the plan's ring is small for: all records are read."""
    plan_of = ShufflePlan._table
    monkeypatch.setattr(ShufflePlan, "_table", lambda *args: replace(plan_of(*args), ring=Ring(16)))
    tagging(monkeypatch, np.arange(RECORDS))
    codes, _, _ = opened(COLUMNS)
    read = np.full(RECORDS, -1)
    read[codes // CELLS] = codes % CELLS
    assert np.array_equal(read, SECRET)


def test_the_ring_of_the_plan_has_room_for_fewer_tags_than_twice_the_own_codes():
    """It gives tags 1, 2, .. to one record each, and 0 to all others; more tags are not apart."""
    own = np.zeros(RECORDS, np.uint8)
    own[1:ROOM] = np.arange(1, ROOM)
    codes, _, _ = opened([(OWN - 1, False, {"a liar": own}), COLUMNS[1]])
    tags, found = codes // STATES, codes % STATES
    assert ROOM < 2 * OWN and set(tags.tolist()) == set(range(ROOM))
    for record in range(1, ROOM):
        assert found[tags == record].tolist() == [SECRET[record]]
    assert sorted(found[tags == 0]) == sorted([SECRET[0], *SECRET[ROOM:]])


def test_tags_beyond_the_ring_of_the_plan_tell_no_record(monkeypatch):
    """A tag for each record, in the ring of the plan: many records have the same tag and code."""
    tagging(monkeypatch, np.arange(RECORDS))
    codes, _, _ = opened(COLUMNS)
    _, counts = np.unique(codes, return_counts=True)
    assert counts.min() > 1


# ---- tags of records that drop out ---------------------------------------------------------------

GAPS = [
    (OWN - 1, False, {"a liar": ZEROS}),
    (STATES, True, {"honest": SECRET}),  # a ninth code says that a value is missing: none is
]


def tagging_gaps(monkeypatch, tags):
    """Have the first of the chain add tags to the sum of the noises; note the opened tags."""
    shuffled, read = _Chains.shuffled, {}

    def tagged(chains, table):
        if chains.me == table.chain[0] == "a liar" and table.dropping:
            noise = chains.carried[table.index][1]
            chains.carried[table.index][1] = noise + tags.astype(noise.dtype)
        return shuffled(chains, table)

    keep = _Chains._keep_complete

    def noted(chains, table, masked_tags):
        ring = chains.plan.commitments.flag_ring
        keep(chains, table, masked_tags)
        read[chains.me] = ring.reduce(masked_tags - chains.masks[table.index][-1]).astype(np.int64)

    monkeypatch.setattr(_Chains, "shuffled", tagged)
    monkeypatch.setattr(_Chains, "_keep_complete", noted)
    return read


def test_a_tagged_record_is_not_opened_by_an_honest_site(monkeypatch):
    read = tagging_gaps(monkeypatch, np.arange(1, RECORDS + 1))
    codes, seal, sent = opened(GAPS)
    assert sorted(read["a liar"]) == list(range(1, RECORDS + 1))
    assert not sent["honest"].values.any() and not sent["honest"].complete.any()
    assert len(codes) == len(seal) == 0


def test_half_of_the_records_tagged_are_left_out_and_the_others_in_an_unknown_order(monkeypatch):
    tags = np.where(np.arange(RECORDS) % 2, np.arange(RECORDS), 0)
    tagging_gaps(monkeypatch, tags)
    codes, _, _ = opened(GAPS)
    assert sorted(codes) == sorted(SECRET[::2])
    assert codes.tolist() != SECRET[::2].tolist()


def test_without_the_check_all_tagged_records_are_read(monkeypatch):
    """As if honest holders took the first's word for which records are complete."""
    read = tagging_gaps(monkeypatch, np.arange(1, RECORDS + 1))
    noted = _Chains._keep_complete

    def believing(chains, table, masked_tags):
        noted(chains, table, masked_tags)
        chains.places[table.index] = np.arange(RECORDS)

    monkeypatch.setattr(_Chains, "_keep_complete", believing)
    codes, seal, _ = opened(GAPS)
    found = np.full(RECORDS, -1)
    found[read["a liar"][seal] - 1] = codes % STATES
    assert np.array_equal(found, SECRET)


# ---- what is open --------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [0, 77])
def test_the_first_reads_a_record_by_leaving_out_all_others(monkeypatch, record):
    tagging_gaps(monkeypatch, (np.arange(RECORDS) != record).astype(int))
    codes, _, sent = opened(GAPS)
    assert codes.tolist() == [SECRET[record]]
    assert sent["honest"].complete.tolist() == [1]  # which the honest site sees


def test_the_first_and_the_last_together_read_a_site_between_them(monkeypatch):
    """The last says to the one between that all masked tags are what the dealer's masks are."""
    read = tagging_gaps(monkeypatch, np.arange(1, RECORDS + 1))
    exchange = _Chains._exchange

    def lying(chains, outbox, kind, *more):
        if kind is Tags and chains.me == "z accomplice":
            ((*_, masks),) = chains.masks.values()
            outbox = dict.fromkeys(outbox, chains.plan.commitments.flag_ring.pack(masks))
        return exchange(chains, outbox, kind, *more)

    monkeypatch.setattr(_Chains, "_exchange", lying)
    noted = _Chains._keep_complete

    def all_kept(chains, table, masked_tags):
        noted(chains, table, masked_tags)
        if chains.me != "honest":
            chains.places[table.index] = np.arange(RECORDS)

    monkeypatch.setattr(_Chains, "_keep_complete", all_kept)
    codes, seal, sent = opened([*GAPS, (1, False, {"z accomplice": ZEROS})])
    assert sent["honest"].complete.tolist() == [RECORDS]
    found = np.full(RECORDS, -1)
    found[read["z accomplice"][seal] - 1] = codes // 2 % STATES
    assert np.array_equal(found, SECRET)


def test_an_honest_chain_opens_the_table():
    codes, _, _ = opened(GAPS)
    (table,) = plain_tables(GAPS, RECORDS, [Group((0,), (1,))])
    assert np.bincount(codes, minlength=OWN * STATES).tolist() == table.ravel().tolist()
