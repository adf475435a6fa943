"""At full size, by chi-square: what a party is sent does not depend on another's data.

Beside it masks as small as the data, which the same test must reject.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.worlds import all_of, taken_apart, world
from vertibayes_mpc.masked_tables import Group
from vertibayes_mpc.masked_tables.block import Correction, Masked, Part
from vertibayes_mpc.randomness import StreamKey, label
from vertibayes_mpc.sharing import Share

RECORDS = 20_000
BUCKETS = 32


class SmallMasks:
    """A real mistake, made in the field: masks as small as the data."""

    def __init__(self, key):
        self.key = key

    def elements(self, ring, name, shape, start=0):
        return self.key.elements(ring, name, shape, start) % ring.dtype.type(10)


def views(data_of_b, bits, wrap):
    """Return the bits and values of each (kind, sender, receiver), when b holds these codes.

    Of columns, `kind` is the form: b has indicators, codes and, for code 2, flags.
    """
    generator = np.random.default_rng(11)
    codes = {site: generator.integers(0, 3, RECORDS) for site in "ac"}
    columns = [
        (2, False, {"a": codes["a"]}),
        (2, True, {"b": data_of_b}),
        (2, False, {"c": codes["c"]}),
    ]
    secret = bytes([int(data_of_b[0])])  # other masks in another run

    def stream(a, b):
        return wrap(StreamKey(label("key", secret, a, b)))

    w = world(columns, RECORDS, bits, block_rows=8192, stream=stream)
    found, rings = defaultdict(list), {}
    for m in w.commit():
        columns = taken_apart(w.commitments, m.sender, m.message.values)
        for (form, place), values in columns.items():
            found[form, m.sender, m.receiver].append(values.ravel())
            rings[form] = w.commitments.form(form, place).ring.bits
    for m in w.count(w.plan([Group((0, 1), (2,)), Group((0, 2), (1,))]))[1]:
        elements = all_of(w.commitments.ring, m.message.values)
        found[type(m.message), m.sender, m.receiver].append(elements)
    return {key: (rings.get(key[0], bits), np.concatenate(v)) for key, v in found.items()}


def p_values(bits, wrap=lambda key: key):
    """Compare the high and low bits of each link's values for b's all-zeros and all-twos data."""
    zeros, twos = (views(np.full(RECORDS, code), bits, wrap) for code in (0, 2))
    assert zeros.keys() == twos.keys()
    found = {}
    for key in zeros:
        width, drawn = zeros[key]
        if key[0] is Share or len(drawn) < 100 * BUCKETS:
            continue  # shares are compared below, by their sum; corrections are short
        for shift in (0, width - 5):
            counts = [
                np.bincount((v >> v.dtype.type(shift)) % BUCKETS, minlength=BUCKETS)
                for v in (drawn, twos[key][1])
            ]
            table = np.array(counts)
            found[(*key, shift)] = chi2_contingency(table[:, table.any(axis=0)]).pvalue
    return found


@pytest.mark.parametrize("bits", [14, 16, 20, 24, 32])
def test_no_message_depends_on_the_data(bits):
    found = p_values(bits)
    assert {key[0] for key in found} == {"indicators", "codes", "flags", Masked, Part}
    assert min(found.values()) > 1e-3 / len(found)


def test_small_masks_are_rejected():
    found = p_values(16, SmallMasks)
    for form in ("indicators", "codes", "flags"):
        to_others = [
            p for (kind, sender, _, _), p in found.items() if (kind, sender) == (form, "b")
        ]
        assert len(to_others) == 4 and min(to_others) < 1e-9


def test_shares_and_corrections_are_uniform():
    """Over many labels, one site's share of one cell takes all values alike."""
    high = {Share: [], Correction: []}
    for run in range(400):
        w = world(
            [(1, False, {"a": [1] * 16}), (1, False, {"b": [1] * 16})],
            16,
            stream=lambda a, b, run=run: StreamKey(label("key", run, a, b)),
        )
        w.commit()
        for m in w.count(w.plan([Group((0,), (1,))]))[1]:
            high[type(m.message)].append(int(m.message.values.view("<u2")[0]) >> 13)
    for values in high.values():
        counts = np.bincount(values, minlength=8)
        expected = len(values) / 8
        assert ((counts - expected) ** 2 / expected).sum() < 33  # 7 degrees, p = 3e-5
