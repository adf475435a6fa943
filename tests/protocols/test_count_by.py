"""The ways of counting: the same tables, costs as predicted, and what needs masked tables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from tests.paillier_worlds import small_keys
from tests.party_memory import measured
from tests.protocols.network import Parties
from tests.protocols.small import committed, data_of, plain, study_of
from tests.structure_worlds import example, with_gaps
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.forecast import forecast
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes.study_files import TableFile
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import FREE, Policy
from vertibayes_protocols.queries import Commit, Meet
from vertibayes_protocols.queries.opening.commit import commitments_of
from vertibayes_protocols.queries.tables.counting import grouped
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.queries.tables.ways import WAYS, costs_of
from vertibayes_protocols.query import At
from vertibayes_protocols.settings import CountBy
from vertibayes_protocols.transports.local import EnvelopedPackets
from vertibayes_protocols.variables import Family, Rows

OTHERS = [way for way in WAYS if way != "masked-tables"]
PRODUCT = "scalar-product"


class Noting(SecureCounter):
    """A counter that keeps which families it asked for, call by call."""

    asked: list

    def _ask(self, families, missing, rows):
        self.asked.append(list(families))
        super()._ask(families, missing, rows)


def counter_of(federation, way, **options):
    counter = Noting.of(federation, count_by=way, **options)
    counter.asked = []
    return counter


def by(way, study, **changes):
    """Return a study that counts by another way; by paillier it has no dealer."""
    dealer = "" if way == "paillier" else study.dealer
    return replace(study, count_by=way, dealer=dealer, **changes)


# ---- the same networks and tables ----------------------------------------------------------------


@pytest.mark.parametrize("sites", [2, 3])
@pytest.mark.parametrize("way", WAYS)
def test_k2_and_cpts_on_asia_are_those_of_pooled_records(way, sites):
    _, data = example("asia", 300)
    pooled = PlainCounter(data)
    with small_keys(), federate(split_columns(data, sites)) as federation:
        counter = counter_of(federation, way, order=list(data.variables))
        structure = k2(counter)
        network = fit_cpts(counter, structure)
    assert structure == k2(pooled) and len(structure.edges) > 5
    wanted = fit_cpts(pooled, structure)
    assert all((network.cpts[name] == wanted.cpts[name]).all() for name in data.variables)


@pytest.mark.parametrize("way", WAYS)
def test_em_by_each_way_is_that_of_pooled_records(way):
    _, data = example("asia", 300)
    data = with_gaps(data)
    structure = k2(PlainCounter(example("asia", 300)[1]))
    with small_keys(), federate(split_columns(data, 3)) as federation:
        counter = counter_of(federation, way, order=list(data.variables))
        filled = fit_em_from_tables(counter, structure)
    wanted = fit_em_from_tables(PlainCounter(data), structure)
    for name in data.variables:
        assert (filled.network.cpts[name] == wanted.network.cpts[name]).all()


@pytest.mark.parametrize("way", OTHERS)
def test_sealed_packets_between_mailboxes_carry_all_of_a_way(way):
    """As between machines: the dealer sends ahead, and waits while too much is not read."""
    data = data_of(a="xy", b="z", c="w")
    with small_keys(), Parties(data) as parties, parties.session() as session:
        study = open_study(session, parties.sites, "dealer", count_by=way)
        families = [Family("x", ("z", "w")), Family("y"), Family("z", ("x", "y"))]
        for family, table in zip(families, SecureCounter(study).tables(families), strict=True):
            assert (table == plain(data, *family.members)).all()


FAMILIES = [("x", "z"), ("z", "x", "w"), ("y",), ("x", "y"), ("w", "y", "z", "x"), ("z", "w")]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("rows", [Rows(), Rows(3, 5, 35)])
def test_all_tables_of_two_and_three_holders_and_of_one_are_counted(missing, rows):
    data = with_some_missing(data_of(a="xy", b="z", c="w"))
    asked = [Family(child, tuple(parents)) for child, *parents in FAMILIES]
    policy = replace(FREE, fewest_records=5)
    with small_keys(), federate(data, policy=policy) as federation:
        counters = [
            SecureCounter(
                open_study(federation.session, federation.sites, "dealer", count_by=w, study=b"s")
            ).tables(asked, missing=missing, rows=rows)
            for w in WAYS
        ]
    for tables in zip(*counters, strict=True):
        assert len({table.shape for table in tables}) == 1 and all(t.sum() for t in tables)
        if rows == Rows():  # otherwise each study draws records of its own
            assert all((table == tables[0]).all() for table in tables)


def with_some_missing(data):
    """Let every second column have missing values."""
    return {site: with_gaps(held, 0.2) for site, held in data.items()}


def test_a_table_in_many_parts_is_put_together(monkeypatch):
    costs = WAYS[PRODUCT].costs_type
    monkeypatch.setattr(costs, "part_cells", lambda *_: 4)
    data = data_of(a="xy", b="z", c="w")
    federation, _ = committed(data, replace(study_of(data), count_by=PRODUCT))
    asked = [Family(child, tuple(parents)) for child, *parents in FAMILIES]
    plan = WAYS[PRODUCT](federation.roles["a"].joined, tuple(grouped(asked)), Rows(), False, 9)
    assert len(plan.parts) > 20 and max(part.cells for part in plan.parts) == 4
    counter = SecureCounter(open_study(federation.session, tuple(data), "dealer", count_by=PRODUCT))
    for family, table in zip(asked, counter.tables(asked), strict=True):
        assert (table == plain(data, *family.members)).all()


# ---- costs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sites", [2, 3, 4])
def test_bytes_and_rounds_are_as_predicted(sites):
    _, data = example("asia", 1000)
    with federate(split_columns(data, sites)) as federation:
        counter = counter_of(federation, PRODUCT, order=list(data.variables))
        before = replace(federation.traffic)
        k2(counter)
        sent = federation.traffic.bytes
        rounds = federation.traffic.rounds - before.rounds
    predicted = forecast(counter.study, counter.asked)
    opened = forecast(counter.study, [])
    assert predicted.bytes == pytest.approx(sent, rel=0.05)
    assert rounds <= predicted.rounds - opened.rounds <= 1.2 * rounds


@pytest.mark.parametrize(
    ("columns", "records", "memory"),
    [({"a": "xy", "b": "zw"}, 40_000, 1 << 23), ({"a": "x", "b": "zw", "c": "v"}, 9_000, 1 << 22)],
)
def test_no_party_takes_more_memory_than_planned(columns, records, memory):
    data = {site: _many(held, records) for site, held in data_of(**columns).items()}
    federation, _ = committed(
        data,
        replace(study_of(data), count_by=PRODUCT, block_rows=1 << 15, memory=memory),
        memory_budget=1 << 34,
    )
    names = [name for held in data.values() for name in held.variables]
    families = [Family(names[0], (names[-1],)), Family(names[-1], (names[0], names[1]))]
    query, _ = ask_tables(federation.session.role.joined, families, False, Rows())
    with measured(federation) as taken:
        federation.session.ask(query)
        plan = query.plan(At.of(federation.roles["a"]))
    assert len(plan.parts) > len(plan.by_holders)  # the memory divides them
    assert max(party.most for party in taken.values()) <= plan.planned.memory <= memory


def _many(held, records):
    codes = {name: np.resize(column, records) for name, column in held.codes.items()}
    return replace(held, codes=codes)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", OTHERS)
def test_a_site_counts_by_another_way_only_if_its_owner_allows_it(way):
    """Who must not work together differs: an analyst alone must not decide whom a site trusts."""
    data, refused = data_of(a="x", b="y"), f"tables counted by {way}: its policy allows count_by"
    with federate(data, policy=Policy(free_tables=True)) as federation:
        session, names = federation.session, federation.sites
        counter_of(federation, "masked-tables").tables([Family("x", ("y",))])
        with pytest.raises(QueryRefusedError, match=refused):
            counter_of(federation, way)
        session.ask(Meet.of(session.role, names, "dealer"))
        with pytest.raises(QueryRefusedError, match=refused):
            session.ask(Commit.of(by(way, study_of(data))))
        facts = {fact.what for role in federation.roles.values() for fact in role.ledger.facts}
        assert not any("tables are counted by" in what for what in facts)


@pytest.mark.parametrize(("way", "dealer"), [("paillier", "nobody"), ("scalar-product", "dealer")])
def test_a_site_notes_and_says_another_way_and_its_dealer(way, dealer):
    said = []
    with small_keys(), federate(data_of(a="x", b="y")) as federation:
        federation.roles["a"].remark = said.append
        counter_of(federation, way)
        facts = [f.what for f in federation.roles["a"].ledger.facts]
    assert said == [f"tables are counted by {way}; the dealer is {dealer}"] and said[0] in facts


def test_a_hopeless_request_is_refused_before_it_is_sent_and_says_what_it_takes():
    data = data_of(a="x", b="y", c="z", d="w", e="v", f="u", g="t")
    with federate(data, policy=replace(FREE, most_minutes=1e-4)) as federation:
        counter = counter_of(federation, PRODUCT)
        federation.session.role.policy = Policy(most_minutes=1e-4)
        five = [Family("x", ("y", "z", "w", "v"))]
        sent = federation.traffic.bytes
        for ask in (counter.check, counter.tables):
            with pytest.raises(QueryRefusedError) as refused:
                ask(five)
            assert refused.value.site == "analyst"
            says = r"takes about .* s of work.* sends [\d,]+ bytes by scalar-product; count by"
            assert re.search(says, refused.value.reason)
            with pytest.raises(ValueError, match=r"7 holders.*count by masked-tables"):
                ask([Family("x", tuple("yzwvut"))])
        assert federation.traffic.bytes == sent


def test_a_table_that_no_part_can_hold_is_named():
    _, data = example("asia", 300)
    with federate(split_columns(data, 3)) as federation:
        counter = counter_of(federation, PRODUCT, memory=4_000)
        with pytest.raises(ValueError, match=r"the table of .* takes .* bytes of memory"):
            counter.check([Family("xray", ("dysp", "asia"))])


def test_each_way_that_a_study_can_name_has_a_plan():
    assert set(get_args(CountBy)) == set(WAYS)


@pytest.mark.parametrize("way", OTHERS)
def test_choices_and_columns_of_several_holders_need_masked_tables(way):
    data = data_of(a="xy", b="z")
    with small_keys(), federate(data) as federation:
        with pytest.raises(ValueError, match=r"`count_by` must be one of .*, got 'Paillier'"):
            open_study(federation.session, federation.sites, "dealer", count_by="Paillier")
        with pytest.raises(ValueError, match="`count_by` must be masked-tables: choices"):
            open_study(federation.session, federation.sites, "dealer", choices=True, count_by=way)
        study = open_study(federation.session, federation.sites, "dealer", count_by=way)
        with pytest.raises(QueryRefusedError, match="must be masked-tables: 'choose'"):
            study.choose(one_choice())
    shared = study_of(data)
    holders = {**shared.holders, "x": ("a", "b")}
    with pytest.raises(ValueError, match="a column has several holders"):
        by(way, shared, holders=holders)
    with pytest.raises(ValueError, match="no site knows the rows"):
        by(way, shared, alignment=b"rows")


def one_choice():
    alone, family = Family("x"), Family("x", ("z",))
    return Choices((((Score(alone, (), 1),), (Score(family, (), 1),)),))


def test_sites_that_count_another_way_join_no_common_study():
    """The way is in the label of the study, and so in the mark that all sites must have."""
    study = study_of(data_of(a="xy", b="z"))
    labels = {
        commitments_of(by(way, study), {n: [n.encode()] for n in "xyz"}, b"").label for way in WAYS
    }
    assert len(labels) == len(WAYS)


def test_a_study_is_resumed_by_the_way_in_which_it_began(tmp_path):
    data = data_of(a="xy", b="z")
    with federate(data) as federation:
        for way in ("masked-tables", PRODUCT):
            study = open_study(
                federation.session, federation.sites, "dealer", count_by=way, study=b"one"
            )
            if way == PRODUCT:
                continue
            with TableFile(tmp_path / "tables") as kept:
                SecureCounter(study, kept).tables([Family("x")])
        with (
            TableFile(tmp_path / "tables") as kept,
            pytest.raises(ValueError, match="a study with other count_by than"),
        ):
            SecureCounter(study, kept)


# ---- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", OTHERS)
def test_no_column_is_sent_before_a_table_is_asked(way, monkeypatch):
    kinds, pack = set(), EnvelopedPackets.pack

    def noted(packets, sent):
        kinds.add(type(sent.message))
        return pack(packets, sent)

    monkeypatch.setattr(EnvelopedPackets, "pack", noted)
    data = data_of(a="xy", b="z")
    with federate(data) as federation:
        study = open_study(federation.session, federation.sites, "dealer", count_by=way)
        assert costs_of(study.study, 40, missing=True).stored_bytes == 0
        opened = set(kinds)
        SecureCounter(study).tables([Family("x", ("z",))])
    assert Columns not in kinds and opened < kinds
    assert all(not role.holder.masked for role in federation.roles.values() if role.holder)


def test_two_sessions_of_one_study_use_no_label_twice(monkeypatch):
    labels, pack = [], EnvelopedPackets.pack

    def noted(packets, sent):
        if name := getattr(sent.message, "label", b""):
            labels.append((sent.sender, sent.receiver, type(sent.message).__name__, name))
        return pack(packets, sent)

    monkeypatch.setattr(EnvelopedPackets, "pack", noted)
    data = data_of(a="xy", b="z", c="w")
    with federate(data) as federation:
        for _ in range(2):
            study = open_study(
                federation.session, federation.sites, "dealer", count_by=PRODUCT, study=b"one"
            )
            counter = SecureCounter(study)
            for family in (Family("x", ("z",)), Family("x", ("z", "w")), Family("y", ("z",))):
                counter.tables([family])
    assert len(labels) > 30 and len(set(labels)) == len(labels)
