"""Analysts who ask what would open a record or a column, and what stops them.

Outside the honest-but-curious model, but cheap to stop: each attack is run against the variant
without the check first, and reads the data there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.randomness import SeededRandomness
from tests.worlds import all_of, world
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes_mpc.errors import UnexpectedMessageError
from vertibayes_mpc.masked_tables import Group, Plan, count_tables, deal_tables, open_tables
from vertibayes_mpc.masked_tables.plan import Masks
from vertibayes_mpc.scheduler import run_all
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Rows

RECORDS = 32


def two_queries(secret):
    """Ask the sites for (0, 3 | 2) twice, the dealer first for the same and then for (1, 3 | 2).

    q holds 0, 1 and 2; p holds 3, the secret. Return what q sees of the extension, both times.
    """
    columns = [(1, False, {"q": np.arange(RECORDS) % 2}) for _ in range(3)]
    columns.append((1, False, {"p": secret}))
    w = world(columns, RECORDS, block_rows=32)
    w.commit()
    asked, again = (w.plan([Group((0, 3), (2,))]) for _ in range(2))
    other = replace(again, groups=(Group((1, 3), (2,)),))
    seen = []
    for counted, dealt in ((asked, asked), (again, other)):
        programs = {s: count_tables(w.holders[s], counted, "analyst") for s in "pq"}
        programs["dealer"] = deal_tables(w.dealer_keys, dealt)
        programs["analyst"] = open_tables(counted)
        _, transcript = run_all(programs)
        part = next(m for m in transcript if (m.sender, m.receiver) == ("p", "q")).message
        seen.append(all_of(w.commitments.ring, part.values).reshape(-1, RECORDS))
    return w, asked, seen


def test_without_names_of_queries_a_dealer_told_otherwise_opens_a_column(monkeypatch):
    monkeypatch.setattr(Plan, "label", b"neither what is asked nor its number")
    secret = np.random.default_rng(1).integers(0, 2, RECORDS)
    w, asked, (first, second) = two_queries(secret)
    # q knows its own streams: the difference is (A_q(1) - A_q(0)) A_p(3), less the parts of q.
    masks = Masks(w.commitments, w.holders["q"].dealer_key, asked.selection, asked.label)
    factor = masks.of((1,), 0) - masks.of((0,), 0)
    product = second - first + masks.correction((1, 3), 0) - masks.correction((0, 3), 0)
    committed = w.holders["q"].masked["indicators", 3, 0][0]
    read = np.flatnonzero(factor[0] % 2)
    assert len(read) > 5
    for record in read:
        mask = int(product[0, record]) * pow(int(factor[0, record]), -1, 2**16) % 2**16
        assert (int(committed[record]) - mask) % 2**16 == secret[record]


def test_a_dealer_told_otherwise_is_named():
    with pytest.raises(UnexpectedMessageError, match="another query") as caught:
        two_queries(np.zeros(RECORDS))
    assert caught.value.party == "dealer"


def slices_that_single_out(n):
    """Sets of rows whose sums and differences are one record, though no two differ by few."""
    yield [Rows(0, 0, 50), Rows(0, 49, None)]
    yield [Rows(), Rows(0, 0, 100), Rows(0, 100, n - 1)]
    yield [Rows(0, 0, 30), Rows(0, 10, 31)]


@pytest.mark.parametrize("sets", list(slices_that_single_out(200)), ids=str)
def test_slices_that_single_out_a_record_are_refused(alarm_data, sets):
    data = alarm_data.take(list(alarm_data.variables)[:4])
    few = type(data)(data.variables, {n: c[:200] for n, c in data.codes.items()})
    families = [Family(next(iter(data.variables)))]
    with federate(split_columns(few, 2)) as federation:
        counter = SecureCounter.of(federation)
        with pytest.raises(QueryRefusedError, match=r"single out fewer than 10|leave out"):
            [counter.tables(families, rows=rows) for rows in sets]
    # The same sets, asked of sites that do not mind, single out a record.
    lenient = Policy(fewest_records=1, free_tables=True)
    with federate(split_columns(few, 2), policy=lenient) as federation:
        counter = SecureCounter.of(federation)
        assert all(counter.tables(families, rows=rows) for rows in sets)


def test_folds_of_one_split_are_answered(alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:4])
    family = Family(next(iter(data.variables)))
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation)
        counts = [
            counter.tables([family], rows=Rows(0, k * 200, (k + 1) * 200))[0] for k in range(10)
        ]
    assert sum(counts).sum() == 2000


def test_the_number_of_record_sets_is_counted_over_all_studies(alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:2])
    family, memories = Family(next(iter(data.variables))), {}
    parts = split_columns(data, 2)
    memories = {site: SiteMemory(randomness=SeededRandomness(site.encode())) for site in parts}
    for study in range(3):
        with federate(
            parts, memories=memories, policy=Policy(most_row_sets=3, free_tables=True)
        ) as federation:
            counter = SecureCounter.of(federation)
            counter.tables([family])
            if study < 2:
                counter.tables([family], rows=Rows(0, 0, 1000))
            else:
                with pytest.raises(QueryRefusedError, match="3 record sets"):
                    counter.tables([family], rows=Rows(0, 0, 1000))


def test_one_person_more_is_refused_across_sessions(alarm_data):
    """Tables over 1,999 and 2,000 records would differ by one person's row."""
    data = alarm_data.take(list(alarm_data.variables)[:4])
    ids = [f"person {i}" for i in range(2000)]
    family = Family(next(iter(data.variables)))
    for leave_out, answered in ((1, False), (9, False), (10, True)):
        memories = {f"site-{k}": SiteMemory() for k in (1, 2)}
        for last in (2000, 2000 - leave_out):
            with federate(
                split_columns(identified(data, ids, last), 2), memories=memories
            ) as federation:
                counter = SecureCounter.of(federation)
                if last == 2000 or answered:
                    assert counter.tables([family])[0].sum() == last
                else:
                    with pytest.raises(QueryRefusedError, match="single out fewer than 10"):
                        counter.tables([family])


def identified(data, ids, last):
    from vertibayes_protocols.site.text_column import TextColumn

    codes = {n: c[:last] for n, c in data.codes.items()}
    return type(data)(data.variables, codes, TextColumn.of(ids[:last]))
