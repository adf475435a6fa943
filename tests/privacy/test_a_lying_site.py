"""What a site that lies can do today: documented, and named in docs/threat-model.md.

Honest sites commit rows of zeros and a one. A site that commits the weights 1, 2, 4, .. instead
reads, in the opened cell, the other site's bits at those records: 32 of them a cell. Its messages
are as uniform as honest ones, so no range check catches it; a proof over a field would.
"""

from __future__ import annotations

import numpy as np

from tests.worlds import world
from vertibayes_mpc.masked_tables import Group

RECORDS = 32


def test_a_site_that_commits_weights_reads_a_record_a_bit():
    secret = np.random.default_rng(2).integers(0, 2, RECORDS)
    honest, lying = (1, False, {"victim": secret}), (1, False, {"liar": np.zeros(RECORDS)})
    w = world([honest, lying], RECORDS, bits=32, block_rows=32)
    weights = (np.uint32(1) << np.arange(RECORDS, dtype=np.uint32))[None]
    honest_clear = w.holders["liar"].clear
    w.holders["liar"].clear = lambda form, place, block: (
        weights if form.name == "indicators" else honest_clear(form, place, block)
    )
    w.commit()
    (table,), _ = w.count(w.plan([Group((1,), (0,))]))
    opened = int(table[1, 1])  # sum over records of secret * weight
    read = [opened >> record & 1 for record in range(RECORDS)]
    assert read == secret.tolist()


def test_an_honest_site_reads_a_count():
    secret = np.random.default_rng(2).integers(0, 2, RECORDS)
    columns = [(1, False, {"victim": secret}), (1, False, {"other": np.ones(RECORDS)})]
    w = world(columns, RECORDS, bits=32, block_rows=32)
    w.commit()
    (table,), _ = w.count(w.plan([Group((0,), (1,))]))
    assert int(table[1, 1]) == secret.sum()
