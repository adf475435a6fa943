"""The life of a site or dealer: await a query, agree or refuse, run it, again."""

from __future__ import annotations

from mpc.rounds import Expect, Party, Program, Round
from protocols.errors import QueryRefusedError
from protocols.session import QUERY_CELLS, REASON_BYTES, Answer, Conversations, Go, Query, Role


def serve(role: Role, analyst: Party, conversations: Conversations) -> Program[None]:
    """Answer an analyst's queries, one after the other, until the transport ends the program.

    Parameters
    ----------
    role : Role
        The party's state, which the programs read and extend.
    analyst : Party
    conversations : mapping of query class to Conversation
        The kinds of queries that are answered at all.
    """
    try:
        yield from _serve(role, analyst, conversations)
    finally:
        role.leave()


def _serve(role: Role, analyst: Party, conversations: Conversations) -> Program[None]:
    while True:
        query = (yield Round({}, {analyst: Expect(Query, QUERY_CELLS)}, idle=True))[analyst]
        assert isinstance(query, Query)  # the transport has checked the kind
        answer = _consider(role, query, conversations)
        verdict = (yield Round({analyst: answer}, {analyst: Expect(Go)}))[analyst]
        assert isinstance(verdict, Go)  # the transport has checked the kind
        if answer.agreed and verdict.run:
            yield from conversations[type(query)].sides[type(role)].program(role, query)


def _consider(role: Role, query: Query, conversations: Conversations) -> Answer:
    conversation = conversations.get(type(query))
    if conversation is None or type(role) not in conversation.sides:
        return Answer(False, f"queries of the kind {query.kind!r} are not answered")
    try:
        conversation.sides[type(role)].consider(role, query)
    except QueryRefusedError as refusal:
        return Answer(False, refusal.reason.encode()[:REASON_BYTES].decode(errors="ignore"))
    return Answer(True, "")
