"""The life of a site or dealer in one session: await a query, agree or refuse, run it, again.

Several sessions may be at some place of this life at the same time. A step of one, from one message
to the next, is never interrupted by another. A query is considered once more when the analyst lets
it run, if a query of another session was begun in between: this may have changed what the party
remembers. A session that asks for a study that another session runs is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from vertibayes_mpc.errors import ProtocolError
from vertibayes_mpc.rounds import Expect, Party, Program, exchange
from vertibayes_protocols.engine import Considered, consider
from vertibayes_protocols.engine import answer as run_query
from vertibayes_protocols.errors import QueryRefusedError, SessionOverError, TransportError
from vertibayes_protocols.query import AnyQuery, Query
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.session import QUERY_CELLS, REASON_BYTES, Answer, Go, Traffic

Kinds: TypeAlias = Collection[type[AnyQuery]]
P = TypeVar("P", bound=SiteRole | DealerRole)


class Watch:
    """Is notified of the events of one session, for a log; this one ignores them."""

    def begun(self) -> None:
        """Note that the party has joined the session."""

    def considered(self, query: AnyQuery, answer: Answer, detail: str) -> None:
        """Note the answer to a query, and the detail of a refusal for the owner."""

    def finished(self, query: AnyQuery, seconds: float, sent: int) -> None:
        """Note that a query was run, its seconds, and the bytes that this party sent."""

    def ended(self, error: Exception | None) -> None:
        """Note that the session has ended, and the error that ended it, if one did."""


UNWATCHED = Watch()


def serve(
    role: P,
    analyst: Party,
    kinds: Kinds,
    watch: Watch = UNWATCHED,
    traffic: Traffic | None = None,
) -> Program[None]:
    """Answer an analyst's queries, one after the other, until the transport ends the program."""
    traffic = traffic or Traffic()
    with _noted(role, analyst):
        while True:
            expect = {analyst: Expect(Query, QUERY_CELLS)}  # type: ignore[type-abstract]
            query = (yield from exchange({}, expect, idle=True))[analyst]
            (answer, detail, considered), begun = _consider(role, query, kinds), role.shared.queries
            watch.considered(query, answer, detail)
            verdict = (yield from exchange({analyst: answer}, {analyst: Expect(Go)}))[analyst]
            if considered is not None and verdict.run:
                if role.shared.queries != begun:
                    considered = _consider_again(role, query, kinds)
                role.shared.queries += 1
                began, sent = perf_counter(), traffic.bytes
                run = role.run if isinstance(role, SiteRole) else None  # of an approved study
                if run is not None:
                    run.begin(query)
                yield from run_query(role, considered)
                if run is not None:
                    run.end(query)
                watch.finished(query, perf_counter() - began, traffic.bytes - sent)


@contextmanager
def _noted(role: P, analyst: Party) -> Iterator[None]:
    """Note in a site's ledger that a session begins and ends; leave it at the end."""
    if not isinstance(role, SiteRole):
        try:
            yield
        finally:
            role.leave()
        return
    shared, reason = role.ledger, ""
    role.ledger = shared.begin(analyst, lambda: study_now(role))
    try:
        yield
    except SessionOverError:
        raise
    except Exception as error:
        is_ours = isinstance(error, ProtocolError | TransportError | QueryRefusedError)
        reason = str(error) if is_ours else type(error).__name__  # another text can have a value
        raise
    finally:
        role.ledger.end(reason)
        role.leave()
        role.ledger = shared


def study_now(role: SiteRole | DealerRole) -> tuple[str, str]:
    """Return the study of a session so far, and its approval: fields of a `Purpose`."""
    if not isinstance(role, DealerRole) and role.run is not None:
        return role.run.approved.contract.digest.hex(), role.run.approved.words
    return "" if role.joined is None else role.joined.study.id.hex(), ""


def _consider(
    role: P, query: AnyQuery, kinds: Kinds
) -> tuple[Answer, str, Considered[Any, Any] | None]:
    """Return the answer to a query, the detail of a refusal for the owner, and what was agreed."""
    try:
        _admit(role, query, kinds)
        considered = consider(role, query)
        _claim(role, query)
    except QueryRefusedError as refusal:
        reason = refusal.reason.encode()[:REASON_BYTES].decode(errors="ignore")
        if isinstance(role, SiteRole):  # a query's own words would fill the disk
            role.ledger.refuse(query.kind, reason, refusal.detail)
        return Answer(False, reason), refusal.detail, None
    return Answer(True, ""), "", considered


def _consider_again(role: P, query: AnyQuery, kinds: Kinds) -> Considered[Any, Any]:
    """Consider a query that the party has agreed to; the session fails if it must now refuse."""
    answer, _, considered = _consider(role, query, kinds)
    if considered is None:
        reason = f"agreed to a query, and now refuses it: {answer.reason}"
        raise ProtocolError(role.party, reason)
    return considered


def _claim(role: P, query: AnyQuery) -> None:
    """Refuse to run a study in two sessions at the same time."""
    running = role.shared.claim(query.claims, role) if query.claims else None
    if running is not None:
        reason = (
            f"{running.analyst} runs this study since {running.since}, in another session: wait "
            "until it has ended, or stop it"
        )
        raise QueryRefusedError(role.party, reason)


def _admit(role: P, query: AnyQuery, kinds: Kinds) -> None:
    """Let pass the kinds that a party answers and, at a site, what its owner has agreed to."""
    if type(query) not in kinds or not (query.is_dealt or isinstance(role, SiteRole)):
        reason = f"queries of the kind {query.kind!r} are not answered"
        raise QueryRefusedError(role.party, reason)
    if isinstance(role, DealerRole):
        return
    if role.went_back:
        raise QueryRefusedError(role.party, role.went_back)
    if role.run is not None:
        role.run.check(query)
    elif not (role.policy.free_tables or query.phase == "begin"):
        reason = (
            "it answers approved studies alone: ask its owner to approve study.toml with "
            "`vertibayes approve`"
        )
        raise QueryRefusedError(role.party, reason)
