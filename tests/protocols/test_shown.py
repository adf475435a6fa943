"""What sites show in tests is counted: effects that state less, and unknown messages, are found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pytest

from tests import shown
from tests.protocols.golden import queries
from tests.protocols.golden.queries import QUERIES
from tests.protocols.golden.record import opened, worlds
from tests.protocols.golden.worlds import outcome
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import ArrayMessage, send
from vertibayes_mpc.sharing import send_share
from vertibayes_protocols.budget import Released
from vertibayes_protocols.queries import KINDS, Describe, Release, Tables


def found(kind, less, name, **study):
    """Ask a query whose effects a site understates; return what the check has found."""
    real, asked = kind.effects, QUERIES[name]

    def understated(query, plan, at):
        return replace(real(query, plan, at), **less(real(query, plan, at)))

    with worlds(asked.scene) as world:
        session = opened(world, asked.scene)
        if study:
            session.ask(queries.commit(session.analyst, b"another", **study))
        query = asked.query(session.analyst)
        with patch.object(kind, "effects", understated):
            ended = outcome(lambda: session.ask(query))
    what, shown.understated[:] = [*shown.understated], []
    assert (ended == "answered") == (not what)
    return what


def half_released(effects):
    tables = effects.leaves.tables
    return {"leaves": effects.leaves._replace(tables=Released(tables.tables, tables.cells // 2))}


def half_counted(effects):
    return {"tables": tuple((names, cells // 2) for names, cells in effects.tables)}


def half_scored(effects):
    return {"leaves": effects.leaves._replace(records=effects.leaves.records // 2)}


def one_table_fewer(effects):
    return {"opens": [*effects.opens][1:]}


def one_bit_fewer(effects):
    return {"leaves": effects.leaves._replace(bits=effects.leaves.bits - 1)}


LESS = (
    ("tables", half_released),
    ("tables", one_table_fewer),
    ("tables of some records", half_released),
    ("release", half_released),
    ("release", one_table_fewer),
    ("release, cut", half_released),
    ("release, laplace", half_released),
    ("score table", half_released),
    ("predict", half_scored),
    ("choose", one_bit_fewer),
    ("sums", half_counted),
    ("sums, additive", half_counted),
    ("updates", half_counted),
    ("updates, gossip", half_counted),
    ("report", half_counted),
    ("publish", one_table_fewer),
    ("scores", half_scored),
    ("consensus", half_counted),
)


@pytest.mark.parametrize(("name", "less"), LESS)
def test_effects_that_state_too_little_are_found(name, less):
    (kind,) = {k for k in KINDS if k.kind == name.partition(",")[0].partition(" of ")[0]}
    assert not found(kind, lambda effects: {}, name)
    assert found(kind, less, name)


@pytest.mark.parametrize("kind", [Tables, Release])
def test_effects_of_shuffled_tables_that_state_too_little_are_found(kind):
    less, as_codes = half_released, {"most_indicators": 1}
    with patch.dict(shown.NUMBERS, {"share": lambda *_: 0}):  # these tables leave as codes
        assert not found(kind, lambda effects: {}, kind.kind, **as_codes)
        assert found(kind, less, kind.kind, **as_codes)


def test_each_kind_that_shows_numbers_has_a_control():
    named = {name.partition(",")[0].partition(" of ")[0] for name, _ in LESS}
    assert named == set(shown.STATED)


@dataclass(frozen=True, slots=True)
class Numbers(ArrayMessage):
    """A message that no table of the check has."""

    kind: ClassVar[str] = "test: unknown numbers"


def test_an_unknown_message_is_found():
    def tell(query, site, plan, give):
        yield from send({site.analyst: Numbers(np.arange(3, dtype=np.uint8))})

    with patch.object(Describe, "run_site", tell):
        (what, *_) = found(Describe, lambda effects: {}, "describe")
    assert "'test: unknown numbers' of 'describe' is in no table" in what


def test_a_kind_that_states_no_numbers_shows_none():
    def tell(query, site, plan, give):
        yield from send_share(np.arange(3, dtype=np.uint16), Ring(16), site.analyst)

    with patch.object(Describe, "run_site", tell):
        assert found(Describe, lambda effects: {}, "describe")
