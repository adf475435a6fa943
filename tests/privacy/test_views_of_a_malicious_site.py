"""What one malicious site is sent, over several queries, tells nothing of a record: measured.

In the ring of one bit each record is a sample: all it is sent of a record is a row of bits. A
Walsh-Hadamard transform gives the correlation of every parity of these bits, and of the honest
columns, at once; if they are uniform and independent none is larger than chance. The site answers
as it likes: each element is a random function of all that it was sent before of that record.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import hadamard

from tests.worlds import whole_bytes, world
from vertibayes_mpc.commitments import commit
from vertibayes_mpc.labelled import Labelled
from vertibayes_mpc.masked_tables import Group, Plan, basis, count_tables, deal_tables, open_tables
from vertibayes_mpc.masked_tables.block import Correction
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.scheduler import ByHand, Scheduler

RECORDS = 1 << 18
BLOCK = RECORDS
CHANCE = 7  # standard deviations: no correlation of uniform, independent bits is larger


@pytest.fixture(autouse=True)
def elements_of_a_byte():
    with whole_bytes():
        yield


class Wicked(ByHand):
    """Replaces what `bad` parties send; keeps what they are sent."""

    def __init__(self, bad):
        super().__init__()
        self.bad, self.views, self.rng = bad, {}, np.random.default_rng(3)

    def pack(self, sent):
        m = sent.message
        if isinstance(m, Labelled) and not isinstance(m, Correction):
            if sent.sender in self.bad and sent.receiver not in self.bad:
                # a random function of the parities seen so far, of each record of this block
                rows = self.rows_of(m)
                seen = [v for part in self.block_view(rows.shape[1]) for v in part]
                new = []
                for own in rows:
                    value = own.copy()
                    for _ in range(3):
                        if seen:
                            i, j = self.rng.integers(len(seen), size=2)
                            value = value ^ (seen[i] & seen[j])
                    new.append(value ^ np.uint8(self.rng.integers(2)))
                changed = np.array(new).reshape(m.values.shape)
                sent = sent._replace(message=type(m)(changed, m.label))
            known = any(np.array_equal(self.rows_of(m), v[0]) for v in self.views.values())
            if sent.receiver in self.bad and sent.sender not in self.bad and not known:
                self.views[len(self.views)] = [self.rows_of(m)]  # one sent to two is one
        return super().pack(sent)

    def rows_of(self, message):
        """Return a message's bits, a row for each column: in columns each bit takes a byte."""
        return message.values.reshape(-1, RECORDS)

    def block_view(self, rows):
        """What was sent of the block that is under way: the last of each list."""
        return [found[-1] for found in self.views.values() if found[-1].shape[1] == rows]

    def bits(self):
        return np.concatenate([np.concatenate(found, 1) for found in self.views.values()])


@pytest.fixture(autouse=True)
def small_ones(monkeypatch):
    true = basis._group
    monkeypatch.setattr(basis, "_group", lambda p, g, a, b, ones: true(p, g, a, b, ones % 2))


def run(carrier, phase, programs):
    carrier.phase = phase
    s = Scheduler(carrier)
    for p, g in programs.items():
        s.start(p, g)
    return {p: s.finish(p) for p in programs}


def transform(cells):
    """Return the Walsh-Hadamard transform: of each parity, how much oftener it is even."""
    spectrum, left = cells.astype(np.float64), len(cells).bit_length() - 1
    while left:
        bits = min(left, 6)
        matrix = hadamard(2**bits, np.float64)
        spectrum = (spectrum.reshape(2**bits, -1).T @ matrix).reshape(-1)  # the next bits lead
        left -= bits
    return spectrum


def largest(columns, queries, bad, secret, most=24):
    """Return the largest correlations, in standard deviations: of the view, and with the data."""
    g = np.random.default_rng(11)
    columns = [(1, False, {s: g.integers(0, 2, RECORDS) for s in held}) for held in columns]
    w = world(columns, RECORDS, 1, BLOCK, code_ring=Ring(1))
    carrier = Wicked(bad)
    run(carrier, "commit", {s: commit(w.holders[s]) for s in w.commitments.sites})
    for i, groups in enumerate(queries):
        plan = w.plan(groups)
        programs = {s: count_tables(w.holders[s], plan, "analyst") for s in plan.parties}
        programs["dealer"] = deal_tables(w.dealer_keys, plan)
        programs["analyst"] = open_tables(plan)
        run(carrier, i, programs)
    bits = carrier.bits()
    data = np.array([sum(columns[i][2].values()) & 1 for i in secret], np.uint8)
    worst = 0
    k = len(bits)
    tries = 1 if k + len(data) <= most else 12
    for _ in range(tries):
        chosen = bits if tries == 1 else bits[np.sort(g.permutation(k)[: most - len(data)])]
        rows = np.concatenate([data, chosen])
        index = np.zeros(RECORDS, np.int64)
        for row in rows:
            index = index * 2 + row
        spectrum = np.abs(transform(np.bincount(index, minlength=1 << len(rows))))
        spectrum = spectrum.reshape(1 << len(data), -1)
        worst = max(worst, spectrum[:, 1:].max())  # parities with some bit of the view
        data_worst = spectrum[1:, 1:].max() / RECORDS**0.5
    return worst / RECORDS**0.5, data_worst


CASES = {
    "lead b, twice": (["a", "b", "b"], [[Group((0, 1), (2,))]] * 2, {"b"}, [0]),
    "lead c, twice": (["a", "b", "c"], [[Group((0, 1), (2,))]] * 2, {"b"}, [0, 2]),
    "three levels": (["a", "b", "c", "b"], [[Group((0, 1, 2), (3,))]] * 2, {"b"}, [0, 2]),
    "b first": (["b", "a", "c", "b"], [[Group((0, 1, 2), (3,))]] * 2, {"b"}, [1, 2]),
    "b last": (["a", "c", "b", "a"], [[Group((0, 1, 2), (3,))]] * 2, {"b"}, [0, 1]),
    "to several leads": (
        ["a", "b", "c", "a"],
        [[Group((0, 1), (2,)), Group((1, 2), (3,))], [Group((0, 1), (2,))]],
        {"b"},
        [0, 2],
    ),
    "other terms between": (
        ["a", "b", "c", "b"],
        [[Group((0, 1), (2, 3))], [Group((0, 1, 2), (3,))], [Group((0, 1), (2,))]],
        {"b"},
        [0, 2],
    ),
    "two malicious": (["a", "b", "c", "b"], [[Group((0, 1, 2), (3,))]] * 2, {"b", "c"}, [0]),
    "hybrid with a": ([("a", "b"), "c", "b"], [[Group((0, 1), (2,))]] * 2, {"b"}, [1]),
    "hybrid last": (["a", ("b", "c"), "b"], [[Group((0, 2), (1,))]] * 2, {"b"}, [0]),
}


BREAKS = ("three levels", "b first")  # where b's messages are factors of what a sends


@pytest.mark.parametrize("case", list(CASES))
def test_all_parities_are_by_chance(case):
    holders, queries, bad, secret = CASES[case]
    columns = [h if isinstance(h, tuple) else (h,) for h in holders]
    found, _ = largest(columns, queries, bad, secret)
    assert found < CHANCE


@pytest.mark.parametrize("case", BREAKS)
def test_queries_without_numbers_are_found(case, monkeypatch):
    label = Plan.label.func
    monkeypatch.setattr(Plan, "label", property(lambda p: label(replace(p, number=0))))
    holders, queries, bad, secret = CASES[case]
    _, of_data = largest([tuple(h) for h in holders], queries, bad, secret)
    assert of_data > 6 * CHANCE
