"""What a query can break: each rule of a policy, what a site remembers, and what no query may say.

Each is a change of the parties' policies, of what sites remember, or of the query; the changes of
two can be made at the same time, which shows which of both a party names.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from tests.protocols.golden.queries import changed
from vertibayes_protocols.approval import nothing_approved
from vertibayes_protocols.budget import Cost, Released
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.storage.meet_counts import Count
from vertibayes_protocols.study import Study

LONG_AGO = 5  # the number of a sum
TWO_HOURS = 7_200_000_000  # microseconds


@dataclass(frozen=True)
class Break:
    """Changes of policies, of attributes of the sites' memories and roles, and of a query.

    fields: (query) -> its free fields that change; content: what its factory is given.
    """

    policy: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    meets: Count | None = None
    runs: tuple[int, int] | None = None
    role: dict[str, Any] = field(default_factory=dict)
    fields: Callable[[Any], dict[str, Any]] | None = None
    content: dict[str, Any] = field(default_factory=dict)


OF_POLICY = {
    "variables": Break({"variables": ("another",)}),
    "most_variables": Break({"most_variables": 1}),
    "fewest_records": Break({"fewest_records": 41}),
    "fewest_records with an earlier set": Break({"fewest_records": 25}),
    "most_row_sets": Break({"most_row_sets": 1}),
    "most_cells": Break({"most_cells": 2}),
    "most_memory": Break({"most_memory": 64}),
    "most_minutes": Break({"most_minutes": 1e-13}),
    "most_stored": Break({"most_stored": 1}),
    "most_failed_meets": Break({"most_failed_meets": 1}, meets=Count(1, 0)),
    "most_released_tables": Break({"most_released_tables": 1}, {"released": Released(1, 5)}),
    "most_released_cells": Break({"most_released_cells": 6}, {"released": Released(1, 5)}),
    "most_choice_bits": Break({"most_choice_bits": 10}, {"chosen": 10}),
    "exact_sums": Break({"exact_sums": False}),
    "exact_neighbours": Break({"exact_neighbours": False}),
    "most_epsilon": Break({"most_epsilon": 0.6, "most_delta": 1e-3}, {"spent": Cost.of(0.25)}),
    "most_delta": Break({"most_epsilon": 0.6, "most_delta": 1e-30}),
    "most_scores": Break({"most_scores": 11}, {"scored": 10}),
    "dishonest": Break({"dishonest": 0.6}),
    "free_tables": Break({"free_tables": False}),
    "count_by": Break({"count_by": ("paillier",)}),
    "most_failed_runs": Break({"most_failed_runs": 1}, runs=(1, 0)),
    "rules": Break({"rules": ("gaussian",)}),
    "least_fewest": Break({"least_fewest": 10}),
    "most_epsilon_of_a_study": Break({"most_epsilon_of_a_study": 0.4}),
    "most_runs": Break({"most_runs": 1}),
    "noise_alone": Break({"noise_alone": True}, {"spent": Cost.of(0.25), "plain": 3}),
}
OF_MEMORY = {
    "most_alignments": Break(meets=Count(3, 0)),
    "runs of the contract": Break(runs=(1, 1)),
}
OF_CONTRACT = {"a withdrawn approval": Break(role={"approvals": nothing_approved})}


def _number(query):
    is_sum = hasattr(query, "analyst")
    return {"number": LONG_AGO if is_sum else 1} if hasattr(query, "number") else {}


def _future(query):
    return {"number": query.number + TWO_HOURS} if hasattr(query, "analyst") else {}


def _study(query):
    other, study = b"another study", getattr(query, "study", None)
    if isinstance(study, Study):
        return {"study": replace(study, id=other)}
    return {} if study is None else {"study": other}


def _analyst(query):
    return {"analyst": bytes(32)} if hasattr(query, "analyst") else {}


def _keys(query):
    return {"keys": (bytes(32), *query.keys[1:])} if hasattr(query, "keys") else {}


OF_QUERY = {
    "a number that was used": Break(fields=_number),
    "a number of the future": Break(fields=_future),
    "another study": Break(fields=_study),
    "another analyst": Break(fields=_analyst),
    "another key": Break(fields=_keys),
    "without the last party": Break(fields=lambda query: {"parties": query.parties[:-1]}),
    "without the first party": Break(fields=lambda query: {"parties": query.parties[1:]}),
}


@contextmanager
def broken(opened, asked, breaks, **content):
    """Yield a query under the changes of some breaks, and the parties that are asked.

    In place of a query that cannot be made, as its constructor refuses it, the error is yielded.
    """
    with ExitStack() as stack:
        for role in opened.roles.values():
            rules = {name: value for b in breaks for name, value in b.policy.items()}
            stack.enter_context(patch.object(role, "policy", replace(role.policy, **rules)))
            if role.party != DEALER:
                for each in breaks:
                    _patched(stack, role, each)
        given = {name: value for b in breaks for name, value in b.content.items()}
        query = asked.query(opened.analyst, **content)
        asks = query.parties
        try:
            query = asked.query(opened.analyst, **{**content, **given})
            asks = query.parties
            fields = {n: v for b in breaks if b.fields for n, v in b.fields(query).items()}
            query = changed(query, **fields)
        except ValueError as error:
            query = error
        yield query, [party for party in asks if party in opened.roles]


def _patched(stack, role, each):
    for name, value in each.memory.items():
        stack.enter_context(patch.object(role.memory, name, value))
    for name, value in each.role.items():
        stack.enter_context(patch.object(role, name, value))
    if each.meets is not None:
        stack.enter_context(patch.object(role.memory.meets, "of", lambda peer: each.meets))
    if each.runs is not None:
        stack.enter_context(patch.object(role.memory.runs, "count", lambda _: each.runs))
