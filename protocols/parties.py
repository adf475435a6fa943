"""The life of a site or dealer: await a query, agree or refuse, run it, again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from mpc.rounds import Expect, Party, Program, exchange
from protocols.errors import QueryRefusedError
from protocols.queries.begin import Begin
from protocols.roles import SiteRole
from protocols.session import (
    QUERY_CELLS,
    REASON_BYTES,
    Answer,
    AnyQuery,
    Conversations,
    Go,
    P,
    Query,
    Side,
)

Considered: TypeAlias = Callable[[AnyQuery, Answer], None]


def unnoted(query: AnyQuery, answer: Answer) -> None:
    """Note no answer."""


def serve(
    role: P, analyst: Party, conversations: Conversations, considered: Considered = unnoted
) -> Program[None]:
    """Answer an analyst's queries, one after the other, until the transport ends the program.

    Parameters
    ----------
    role : Role
        The party's state, which the programs read and extend.
    analyst : Party
        Whose queries are answered.
    conversations : Conversations
        The kinds of queries that are answered at all.
    considered : callable, optional
        Is called with each query and its answer, for a log.
    """
    try:
        while True:
            expect = {analyst: Expect(Query, QUERY_CELLS)}
            query = (yield from exchange({}, expect, idle=True))[analyst]
            side = conversations.side_of(role, query)
            answer = _consider(role, query, side)
            considered(query, answer)
            verdict = (yield from exchange({analyst: answer}, {analyst: Expect(Go)}))[analyst]
            if side is not None and answer.agreed and verdict.run:
                yield from _answered(role, query, side)
    finally:
        role.leave()


def _consider(role: P, query: AnyQuery, side: Side[P, AnyQuery] | None) -> Answer:
    if side is None:
        return Answer(False, f"queries of the kind {query.kind!r} are not answered")
    try:
        _admit(role, query)
        side.consider(role, query)
    except QueryRefusedError as refusal:
        return Answer(False, refusal.reason.encode()[:REASON_BYTES].decode(errors="ignore"))
    return Answer(True, "")


def _admit(role: P, query: AnyQuery) -> None:
    """Let pass, at a site, what its owner has agreed to: the one gate of all queries."""
    if not isinstance(role, SiteRole):
        return
    if role.run is not None:
        role.run.check(query)
    elif not (role.policy.free_tables or isinstance(query, Begin)):
        reason = (
            "it answers approved studies alone: ask its owner to approve study.toml with "
            "`vertibayes approve`"
        )
        raise QueryRefusedError(role.party, reason)


def _answered(role: P, query: AnyQuery, side: Side[P, AnyQuery]) -> Program[None]:
    """Run a query; the run of an approved study notes before what it uses up, and advances."""
    run = role.run if isinstance(role, SiteRole) else None
    if run is not None:
        run.begin(query)
    yield from side.program(role, query)
    if run is not None:
        run.end(query)
