"""Sums: statistics added up over sites that hold different records, with noise or exact.

    analyst -> sites    Sums: what is counted, over whom, with which noise, number t
    site                checks members, states and budget; writes the cost down; counts, adds noise
    sites <-> analyst   the additive scheme or masked sums (`protocols.queries.aggregations`)
    analyst             the sums over all who are in, and what the noise promises

The analyst is the aggregator. Where the statistics are those of naive Bayes, this is HDPNB of Huai
et al. (2015).

Security: the analyst and the `dishonest` share of the sites learn the noisy sums over the others,
and nothing else; that these tell little of a record, or of a site, is the `Promise` of a release.
Sites are trusted to count their own records and to add their noise: one that lies can shift each
count by what fits a slot, and nobody sees it. A site takes part only with members whose keys it has
pinned, in blocks that are large enough, at a number above all before, for an estimate u_k <= n of
the members, under terms that let as many work with the analyst as its policy expects, and within
its budget. Called absent, and so left out with its noise, is at most the `dropouts` share: with the
additive scheme each site refuses other rolls; with masked sums the analyst is trusted with it where
the quorum does not suffice (`Promise.checked`). The digest of the query is in all keys and labels,
so that an analyst who tells sites of different members or terms opens nothing.
Leakage: the noisy sums, to the analyst; members, who is absent, and the number, to all.
Cost: two rounds for query and answer, and those of the way; the names of all members to each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from time import time_ns
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc.aggregation import MOST_TIME
from mpc.errors import PartyGoneError
from mpc.noise import no_noise
from mpc.randomness import label
from mpc.rounds import Expect, Party, Program
from protocols import wire
from protocols.accounting import Privacy, Promise
from protocols.errors import DataError, QueryRefusedError
from protocols.ledger import Ledger, RevealedTable
from protocols.queries.aggregations import (
    WAYS,
    Summation,
    contribute_additive,
    contribute_masked,
    least_block,
    neighbourhood_of,
    open_additive,
    open_masked,
    plan_of,
)
from protocols.queries.members import Members
from protocols.queries.terms import Terms, Values, check_records, count_query, data_pert
from protocols.roles import AnalystRole, SiteRole, agree_pairs
from protocols.schema import Declaration, Declared
from protocols.session import QUERY_CELLS, Conversation, Query
from protocols.site.statistics import Counts, LocalData, Moments, Numeric, Statistic
from protocols.variables import Family, Rows, Variable

PAIRS = "pair keys of a sum"
CLOCKS = 3_600_000_000  # microseconds: how far clocks may differ


class Released(NamedTuple):
    """What the analyst has of one release.

    Attributes
    ----------
    sums : ndarray of shape (terms.counts,), dtype int64
        As they were decrypted, not clamped.
    parties : tuple of Party
        Whose counts are in them.
    promise : Promise or None
        Of the noise; None for exact sums.
    """

    sums: Values
    parties: tuple[Party, ...]
    promise: Promise | None


@dataclass(frozen=True, slots=True)
class Sums(Query[Released]):
    """Ask for sums of statistics; `parties` are the members that are not absent.

    Parameters
    ----------
    number : int
        Above that of all sums that a site has taken part in.
    variables : tuple
        Name and states of each categorical variable.
    numerics : tuple of str
        The columns of numbers.
    bounds : ndarray of shape (len(numerics), 2), dtype float64
        The least and largest number of each.
    families : tuple of tuple of str
        Child and parents of each table.
    moments : tuple
        For each statistic of numbers, the columns and the variable that groups them.
    via : {"additive", "masked"}
    most_parties, most_records : int
        As of `Terms`.
    noise : tuple of str
        Accounting, who is protected and kind of noise; nothing for exact sums.
    shares : ndarray of shape (5,), dtype float64
        eps, delta, gamma, dishonest and dropouts, as of `Privacy` and `Terms`.
    blocks : tuple of tuple of str
        All members, in the blocks of their groups.
    estimates : ndarray, dtype uint32
        u_k of each member, in the order of `blocks`.
    absent : tuple of str
        The members that are not asked.
    """

    kind: ClassVar[str] = "sums"
    number: int
    variables: tuple[tuple[str, tuple[str, ...]], ...]
    numerics: tuple[str, ...]
    bounds: NDArray[np.float64]
    families: tuple[tuple[str, ...], ...]
    moments: tuple[tuple[tuple[str, ...], str], ...]
    via: str
    most_parties: int
    most_records: int
    noise: tuple[str, ...]
    shares: NDArray[np.float64]
    blocks: tuple[tuple[str, ...], ...]
    estimates: NDArray[np.uint32]
    absent: tuple[str, ...]

    @classmethod
    def of(
        cls, analyst: AnalystRole, terms: Terms, members: Members, absent: Iterable[Party] = ()
    ) -> Sums:
        """Return the analyst's next query for sums.

        Parameters
        ----------
        analyst : AnalystRole
            Numbers the query.
        terms : Terms
            What is summed.
        members : Members
            Over whom, and which way.
        absent : iterable of Party, default=()
            The members that are not asked.
        """
        gone, statistics = set(absent), terms.schema.statistics
        counts = [s for s in statistics if isinstance(s, Counts)]
        privacy = terms.privacy
        numbers = (privacy.eps, privacy.delta, privacy.gamma) if privacy else (0.0, 0.0, 0.0)
        numerics = terms.schema.numerics
        blocks = members.blocks
        return cls(
            parties=tuple(party for party in members.parties if party not in gone),
            number=analyst.next_number(),
            variables=tuple((v.name, v.states) for v in terms.schema.variables.values()),
            numerics=tuple(numerics),
            bounds=np.array([(n.low, n.high) for n in numerics.values()], float).reshape(-1, 2),
            families=tuple(f.members for s in counts for f in s.families),
            moments=tuple((s.columns, s.by) for s in statistics if isinstance(s, Moments)),
            via=members.via,
            most_parties=terms.most_parties,
            most_records=terms.most_records,
            noise=(privacy.accounting, privacy.protects, privacy.noise) if privacy else (),
            shares=np.array([*numbers, terms.dishonest, terms.dropouts]),
            blocks=blocks,
            estimates=np.array([members.estimates[p] for b in blocks for p in b], np.uint32),
            absent=tuple(sorted(gone)),
        )

    def declared(self) -> Declared:
        """Return what is counted; ValueError if a name is given twice or is not declared."""
        variables = {name: Variable(name, states) for name, states in self.variables}
        if self.bounds.shape != (len(self.numerics), 2):
            raise ValueError("the columns of numbers and their bounds differ in number")
        pairs = zip(self.numerics, self.bounds.tolist(), strict=True)
        numerics = {name: Numeric(name, *bounds) for name, bounds in pairs}
        counts = Counts(tuple(Family(child, tuple(parents)) for child, *parents in self.families))
        statistics: list[Statistic] = [counts] if self.families else []
        statistics += [Moments(columns, by) for columns, by in self.moments]
        names = [*variables, *numerics]
        if len(set(names)) != len(self.variables) + len(self.numerics):
            raise ValueError("a variable is declared twice")
        if any(len(set(f)) < len(f) for f in self.families):
            raise ValueError("a table has a variable twice")
        if unknown := {name for columns, _ in self.moments for name in columns} - set(numerics):
            raise ValueError(f"{min(unknown)!r} is not a declared column of numbers")
        return Declaration(variables, numerics, tuple(statistics))

    def terms(self) -> Terms:
        """Return the terms.

        Raises
        ------
        ValueError
            If they are not terms.
        """
        if self.shares.shape != (5,) or self.shares.dtype != np.float64:
            raise ValueError("the terms must have five numbers: eps, delta, gamma and two shares")
        eps, delta, gamma, dishonest, dropouts = self.shares.tolist()
        if len(self.noise) not in (0, 3):
            raise ValueError("the noise must have an accounting, a neighbour and a kind, or none")
        privacy = None
        if self.noise and not self.families:
            raise ValueError("the noise is for counts, and no table is asked for")
        if self.noise:
            accounting, protects, noise = self.noise
            privacy = Privacy(
                eps=eps,
                accounting=accounting,
                protects=protects,
                noise=noise,
                delta=delta,
                gamma=gamma,
            )
        sizes = self.most_parties, self.most_records
        return Terms(self.declared(), *sizes, privacy, dishonest, dropouts)

    def summation(self) -> Summation:
        """Return the sum that is asked for; its digest does not depend on who is asked at last.

        Raises
        ------
        ValueError
            If the terms, the members or the way are not those of a sum.
        """
        return _summation(wire.encode(replace(self, parties=())))

    def checked(self, sum_: Summation) -> Summation:
        """Return the sum if its members and its way are those of a sum; as `summation`."""
        terms, members = sum_.terms, sum_.members
        if self.via not in WAYS:
            raise ValueError(f"via {self.via!r}: it must be {' or '.join(WAYS)}")
        if not terms.counts:  # which finds the undeclared variables
            raise ValueError("no statistics are asked for")
        if not 0 <= self.number <= MOST_TIME:
            raise ValueError(f"sum number {self.number}: it must be from 0 to 2**62")
        if not 2 <= len(set(members)) == len(members) <= terms.most_parties:
            raise ValueError(
                f"{len(members)} members: there must be from 2 to {terms.most_parties}, each once"
            )
        least = least_block(terms)
        if self.via == "additive" and len(self.blocks) > 1 and min(map(len, self.blocks)) < least:
            raise ValueError(f"a block of the members has fewer than {least} of them")
        is_whole = self.estimates.dtype == np.uint32 and self.estimates.shape == (len(members),)
        if not is_whole or (self.estimates > len(members)).any():
            raise ValueError("an estimate of the number of members is above their number")
        if not set(self.absent) <= set(members) or len(self.absent) > sum_.most_absent:
            raise ValueError(
                f"{len(self.absent)} members are absent, at most {sum_.most_absent} are agreed"
            )
        if len(members) - len(set(self.absent)) < 2:
            raise ValueError("fewer than two members are present: a sum over one is its count")
        _ = _fewest(self, sum_)  # masked sums over too few are refused here
        return sum_

    def promise(self) -> Promise | None:
        """Return what the noise promises if all who are asked take part; None for exact sums."""
        return _promise(wire.encode(replace(self, parties=())))

    def estimate(self, party: Party) -> int:
        """Return a member's estimate of the number of members."""
        order = [name for block in self.blocks for name in block]
        return int(self.estimates[order.index(party)])


# ---- the site ------------------------------------------------------------------------------------


def _consider(site: SiteRole, query: Sums) -> None:
    try:
        sum_ = query.summation()
    except (ValueError, OverflowError) as error:
        raise QueryRefusedError(site.party, str(error)) from None
    _check_members(site, query, sum_)
    _check_policy(site, query, sum_)
    _check_number(site, query.number)
    try:  # last: the reasons tell of the data, and none may tell of a column that is not shown
        _ = query.promise(), _fewest(query, sum_)
        check_records("its data", sum_.terms, site_records(site, sum_.terms))
    except (ValueError, OverflowError) as error:
        raise QueryRefusedError(site.party, str(error)) from None


def _check_number(site: SiteRole, number: int) -> None:
    """Refuse a number that was used, may have been used, or would leave none to be used.

    Numbers are the analyst's time. A site that has lost its memory knows no number: those before
    it was started may be those of sums whose keys it would use again.
    """
    memory, now = site.memory, time_ns() // 1000
    reason = ""
    if number <= (last := max(memory.last_sum, memory.began - CLOCKS)):
        reason = f"sum number {number} does not come after {last}: keys are used once"
    elif number > now + CLOCKS:
        reason = f"sum number {number} is a time in the future: no later sum could come after it"
    if reason:
        raise QueryRefusedError(site.party, reason)


def _check_members(site: SiteRole, query: Sums, sum_: Summation) -> None:
    if site.party not in {*query.parties} & {*sum_.members} - {*query.absent}:
        raise QueryRefusedError(site.party, "it is not among the members that are asked")
    keys = site.signing_keys if query.via == "masked" else site.public_keys
    strangers = sorted(set(sum_.members) - {site.party} - set(keys))
    if strangers:
        what = "signing key" if query.via == "masked" else "public key"
        raise QueryRefusedError(site.party, f"no {what} of {', '.join(strangers)} is pinned here")
    if site.dealer in sum_.members:  # whose key is pinned too
        raise QueryRefusedError(site.party, "the dealer holds no records: it cannot be a member")
    if not site.analyst_key:
        raise QueryRefusedError(site.party, f"no public key of {site.analyst} is pinned here")


def _check_policy(site: SiteRole, query: Sums, sum_: Summation) -> None:
    policy, privacy = site.policy, sum_.terms.privacy
    hidden = [n for n in (*sum_.terms.schema.variables, *query.numerics) if not policy.shows(n)]
    if hidden:
        raise QueryRefusedError(site.party, f"it does not show {', '.join(hidden)}")
    sizes = [(len(family), 0) for family in query.families]
    policy.check_tables(site.party, [*sizes, (0, sum_.terms.counts)])
    policy.check_dishonest(site.party, sum_.terms.dishonest)
    n = len(sum_.members)
    if n - sum_.most_absent - sum_.terms.colluding(n) < 2 and policy.dishonest:
        reason = "fewer than two members who do not work with the analyst could be in the sum"
        raise QueryRefusedError(site.party, reason)
    if privacy is None:
        policy.check_exact(site.party)
        return
    policy.check_budget(site.party, site.memory.spent, _cost(sum_))
    if privacy.noise == "diluted" and find_spec("opendp") is None:
        raise QueryRefusedError(site.party, "diluted noise needs OpenDP, which is not installed")


def _cost(sum_: Summation) -> tuple[float, float]:
    """Return the eps and delta of a release; nothing is counted for exact sums."""
    accounting = sum_.terms.accounting
    if accounting is None:
        return 0.0, 0.0
    return accounting.eps, accounting.delta(len(sum_.members))


def site_records(site: SiteRole, terms: Terms) -> list[LocalData]:
    """Return a site's records in the declared states.

    Raises
    ------
    DataError
        If a column is missing, or has a state that is not declared.
    """
    return [_recoded(batch, terms.schema) for batch in site.batches]


def _recoded(data: LocalData, schema: Declared) -> LocalData:
    if all(data.variables.get(name) == variable for name, variable in schema.variables.items()):
        return data
    codes = {}
    for name, variable in schema.variables.items():
        if name not in data.variables:
            raise DataError(f"it has no column {name!r}")
        own = data.variables[name].states
        unknown = sorted(set(own) - set(variable.states))
        if unknown:
            raise DataError(f"the column {name!r} has the state {unknown[0]!r}, not a declared one")
        places = [variable.states.index(state) for state in own]
        codes[name] = np.array([*places, len(variable.states)])[data.codes[name]]
    return LocalData(schema.variables, codes, data.numerics, data.numbers)


def _site(site: SiteRole, query: Sums) -> Program[None]:
    sum_ = query.summation()
    terms, accounting = sum_.terms, sum_.terms.accounting
    counts = count_query("its data", terms, site_records(site, terms))
    noise = no_noise
    if accounting is not None:
        noise = accounting.noise(query.estimate(site.party), site.randomness)
    site.memory.sum(query.number, *_cost(sum_))
    _note(site.ledger, query, sum_, query.promise(), site.analyst)
    values = data_pert(counts, noise)
    if query.via == "masked":
        keys = {**site.signing_keys, site.party: site.signing.public}
        plan = plan_of(sum_, keys)
        yield from contribute_masked(
            plan, site.party, site.analyst, site.signing, values, site.randomness
        )
        return
    streams = agree_pairs(site, _neighbours(sum_, site.party), PAIRS)
    streams[site.analyst] = site.keys.agree(site.analyst_key, PAIRS)
    yield from contribute_additive(sum_, site.modulus, site.party, site.analyst, streams, values)


def _neighbours(sum_: Summation, party: Party) -> set[Party]:
    return set[Party]().union(*sum_.neighbourhood(party)) - {party}


def _decoded(encoded: bytes) -> Sums:
    return wire.decode(encoded, "the query", Expect(Sums, QUERY_CELLS))


# All parties of a process have the same query, and a party asks for its sum more than once.
@lru_cache(maxsize=4)
def _summation(encoded: bytes) -> Summation:
    query = _decoded(encoded)
    digest = label("sums", encoded)
    return query.checked(Summation(query.terms(), digest, query.number, query.blocks))


@lru_cache(maxsize=4)
def _promise(encoded: bytes) -> Promise | None:
    """Return what the noise promises if all who were asked take part."""
    query, sum_ = _decoded(encoded), _summation(encoded)
    accounting, n = sum_.terms.accounting, len(sum_.members)
    if accounting is None:
        return None
    absent = set(query.absent)
    order = [party for block in query.blocks for party in block]
    pairs = zip(order, query.estimates.tolist(), strict=True)
    noises = accounting.noises([u for party, u in pairs if party not in absent])
    colluding = sum_.terms.colluding(n)
    safe = _fewest(query, sum_) - colluding
    checked = safe >= accounting.honest(n)
    return accounting.promise(noises, n, colluding, checked=checked)


def _fewest(query: Sums, sum_: Summation) -> int:
    """Return how many members are in every sum that honest ones help to open."""
    if query.via == "masked":
        n, terms = len(sum_.members), sum_.terms
        return neighbourhood_of(n, terms.colluding(n), terms.absent(n)).quorum(n)
    return len(sum_.members) - sum_.most_absent


def _note(
    ledger: Ledger, query: Sums, sum_: Summation, promise: Promise | None, analyst: Party
) -> None:
    numbers = ", ".join(name for columns, _ in query.moments for name in columns)
    kind = f"counts and moments of {numbers}" if numbers else "counts"
    members = f"{len(sum_.members) - len(query.absent)} of {len(sum_.members)} parties"
    noise = "without noise" if promise is None else promise.sentence
    what = f"sums of {kind} over {members}, number {query.number}: {noise}"
    ledger.note(what, "all parties together", (analyst,))
    sizes = {name: len(states) for name, states in query.variables}
    ledger.open(
        RevealedTable(family, prod(sizes[name] for name in family), analyst, Rows())
        for family in query.families
    )


# ---- the analyst ---------------------------------------------------------------------------------


def _need(query: Sums) -> int:
    """Return how many must answer: the others may be gone."""
    sum_ = query.summation()
    return max(2, len(sum_.members) - sum_.most_absent)


def _analyst(analyst: AnalystRole, query: Sums) -> Program[Released]:
    sum_, present = query.summation(), query.parties
    if query.via == "masked":
        total = yield from open_masked(plan_of(sum_, analyst.signing_keys), present)
    else:
        streams = agree_pairs(analyst, sum_.members, PAIRS)
        total = yield from open_additive(sum_, analyst.modulus, analyst.party, streams, present)
    gone = sorted(set(sum_.members) - set(total.parties))
    if len(gone) > sum_.most_absent:
        reason = "gone: the noise of the others does not keep the promise"
        raise PartyGoneError(tuple(gone), reason)
    promise = query.promise()
    _note(analyst.ledger, query, sum_, promise, analyst.party)
    return Released(total.values, total.parties, promise)


SUMS = Conversation(Sums, _analyst, _need).side(SiteRole, _consider, _site)
