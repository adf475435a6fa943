"""Release: reveal the tables that a study ends with, by the rule that its sites have approved.

The figure is that of `vertibayes_protocols.queries.release_plan`. Before a site sends its share:

    site -> its disk    its share, with its noise and its zero share
    site -> sites       Counted: this site has kept its share
    site -> its disk    the release is used up, and charged to all budgets

An answer that was lost is given again (`again`): each site sends the share that it has kept, byte
for byte. No site sends its share before all have kept theirs. A release that broke before that has
revealed nothing, and is computed again. Tables that are shuffled leave on the way: such a release
is used up when it begins, and is not given again.

Security: honest-but-curious, that of `vertibayes_mpc.masked_tables` and `vertibayes_mpc.lookups`;
noise is added to shares before any of them is sent. laplace: the noise of the sites that do not
work with the analyst is a whole copy; gaussian: that of each site is. When an answer is given
again, no noise is drawn and nothing is computed: a site that has changed its columns meanwhile does
not receive other counts under the same noise. Leakage: the tables by the rule, to the analyst;
which tables, to all parties. The sites learn no table. If a sum differs from the number of records,
the run ends, and no party learns which. Cost: as the tables; cut takes a lookup for each cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import ImpossibleTablesError
from vertibayes_mpc.lookups import deal_lookups
from vertibayes_mpc.masked_tables import deal_tables
from vertibayes_mpc.masked_tables.basis import tables_of
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Party, Program
from vertibayes_mpc.sharing import open_sum, send_share
from vertibayes_mpc.shuffled_tables import count_shuffled, deal_shuffled, open_shuffled
from vertibayes_protocols import wire
from vertibayes_protocols.errors import QueryRefusedError, refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.release_given import (
    all_have_counted,
    check_budgets,
    give,
    given_again,
    open_kept,
    record_of,
    revealed_tables,
)
from vertibayes_protocols.queries.release_plan import ReleasePlan
from vertibayes_protocols.queries.release_shares import release_share
from vertibayes_protocols.queries.study_checks import (
    check_at_site,
    check_most,
    check_parties,
    check_places,
    check_planned,
    check_variables,
    joined_study,
    numbered,
    numbers,
    planned,
    remember_records,
)
from vertibayes_protocols.queries.tables import note_asked
from vertibayes_protocols.queries.ways import MOST_GROUPS
from vertibayes_protocols.release import FamilyTables, Rule, RuleKind
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Conversation, Query
from vertibayes_protocols.storage.run_record import GIVEN
from vertibayes_protocols.variables import Family, Rows

FAILED = "a check of released tables failed, and the run ended"


@dataclass(frozen=True, slots=True)
class Release(Query[list[NDArray[np.int64]]]):
    """Ask for the tables of families over all records, by a rule.

    Parameters
    ----------
    study : bytes
        The id of the study.
    variables : tuple of str
        The variables of the tables.
    members : ndarray of dtype uint32
        The places in `variables` of each family's child and parents.
    families : ndarray of shape (families,), dtype uint32
        The number of members of each family.
    missing : bool
        Whether a missing value is a state.
    rule : str
        The kind of the rule.
    fewest : int
        As of `Rule`.
    noise : ndarray of shape (3,), dtype float64
        epsilon, delta and dishonest of the rule.
    number : int
        The number of the query, above all earlier ones in the study: masks are used once.
    again : bool, default=False
        Whether the sites give an answer again that was lost. The dealer is not asked.
    """

    kind: ClassVar[str] = "release"
    study: bytes
    variables: tuple[str, ...]
    members: NDArray[np.uint32]
    families: NDArray[np.uint32]
    missing: bool
    rule: str
    fewest: int
    noise: NDArray[np.float64]
    number: int
    again: bool = False

    @classmethod
    def of(cls, joined: Joined, tables: FamilyTables, *, again: bool = False) -> Release:
        """Return the next query of a study.

        Parameters
        ----------
        joined : Joined
            The study, and the number of its queries so far.
        tables : FamilyTables
            What is asked.
        again : bool, default=False
            Whether an answer was lost, and all sites have kept their shares of it.
        """
        joined.asked += 1
        members = [family.members for family in tables.families]
        places = numbered(members)
        rule = tables.rule
        return cls(
            parties=joined.study.sites if again else joined.study.parties,
            study=joined.study.id,
            variables=tuple(places),
            members=numbers(places[name] for name in chain.from_iterable(members)),
            families=numbers(map(len, members)),
            missing=tables.missing,
            rule=rule.kind,
            fewest=rule.fewest,
            noise=np.array([rule.epsilon, rule.delta, rule.dishonest]),
            number=joined.asked,
            again=again,
        )

    @property
    def rows(self) -> Rows:
        """All records."""
        return Rows()

    @property
    def tables(self) -> FamilyTables:
        """What is asked.

        Raises
        ------
        ValueError
            If the arrays do not describe families, or the rule is not valid.
        """
        check_places(self.members, self.variables)
        lengths = self.families
        if lengths.ndim != 1 or lengths.dtype != np.uint32 or not lengths.size or not lengths.all():
            raise ValueError("a release must have families, each with a child")
        if int(lengths.sum(dtype=np.uint64)) != len(self.members):
            raise ValueError("the lengths of families must fit their members")
        if self.noise.shape != (3,) or self.noise.dtype != np.float64:
            raise ValueError("a rule must have three numbers: epsilon, delta and dishonest")
        epsilon, delta, dishonest = self.noise.tolist()
        rule = Rule(cast("RuleKind", self.rule), self.fewest, epsilon, delta, dishonest)
        return FamilyTables(tuple(self._families()), self.missing, rule)

    def _families(self) -> Iterator[Family]:
        names, at = [self.variables[place] for place in self.members.tolist()], 0
        for length in self.families.tolist():
            child, *parents = names[at : at + length]
            at += length
            yield Family(child, tuple(parents))


# ---- checks --------------------------------------------------------------------------------------


def release_plan(joined: Joined, query: Release) -> ReleasePlan:
    """Return the plan of a release in a study that a party has joined."""
    return planned(joined, query, ReleasePlan, lambda: _make_plan(joined, query))


def _make_plan(joined: Joined, query: Release) -> ReleasePlan:
    digest = label("release", wire.encode(query))
    return ReleasePlan(joined.study, joined.commitments, query.tables, query.number, digest)


def _check(party: Party, policy: Policy, joined: Joined | None, query: Release) -> ReleasePlan:
    """Return the plan of a query, or refuse the query: sizes are checked before it is planned."""
    joined = joined_study(party, joined, query)
    policy.check_records(party, query.rows, joined.study.records)
    asked = joined.study.sites if query.again else joined.study.parties
    check_parties(party, query, asked)
    with refusing(party):
        check_variables(joined.study, query.variables)
        check_most("tables", len(query.families), MOST_GROUPS)
        plan = release_plan(joined, query)
        policy.check_tables(party, _sizes(plan))
        check_planned(party, policy, plan.counting)  # before products are listed
        check_planned(party, policy, plan.planned)
    return plan


def _sizes(plan: ReleasePlan) -> Iterator[tuple[int, int]]:
    """Return (variables, cells, those of missing values included) of each table."""
    if len(set(plan.tables.families)) < len(plan.tables.families):
        raise ValueError("two families of the release are equal; ask for each family once")
    for family in plan.tables.families:
        names = family.members
        if len(set(names)) < len(names):
            raise ValueError(f"a variable appears twice in the family {', '.join(names)}")
        yield len(names), prod(plan.study.variables[name].codes for name in names)


def _consider_at_site(site: SiteRole, query: Release) -> None:
    plan = _check(site.party, site.policy, site.joined, query)
    check_at_site(site, query)
    if query.again and (record := record_of(site)) is not None and record.state == GIVEN:
        return  # it is charged
    if query.again and (site.run is None or record is None):
        raise QueryRefusedError(site.party, "it has kept no share of released tables")
    check_budgets(site, plan)


def _consider_at_dealer(dealer: DealerRole, query: Release) -> None:
    _check(dealer.party, dealer.policy, dealer.joined, query)


# ---- programs ------------------------------------------------------------------------------------


def _site(site: SiteRole, query: Release) -> Program[None]:
    assert site.joined is not None and site.holder is not None  # considered
    plan = release_plan(site.joined, query)
    remember_records(site, query.rows)
    if query.again:
        yield from given_again(site, plan)
        return
    if is_shuffled := any(plan.counted.shuffled):  # these tables leave on the way
        give(site, plan)
    try:
        share = yield from release_share(site.holder, plan, site.randomness)
    except ImpossibleTablesError:
        site.ledger.note(FAILED, site.party, ())
        raise
    if is_shuffled:
        yield from send_share(share, site.analyst)
        if site.party in plan.counted.shuffles.parties:
            yield from count_shuffled(site.holder, plan.counted.shuffles, site.analyst)
        return
    if site.run is not None:
        site.memory.keep_share(site.run.approved.contract.digest, plan.label, share)
    yield from all_have_counted(site.party, plan)
    give(site, plan)
    yield from send_share(share, site.analyst)


def _dealer(dealer: DealerRole, query: Release) -> Program[None]:
    assert dealer.joined is not None  # considered
    plan, keys = release_plan(dealer.joined, query), dealer.mask_keys
    for part in plan.parts:
        yield from deal_tables(keys, part)
    yield from deal_lookups(keys, plan.lookups)
    yield from deal_shuffled(keys, plan.counted.shuffles)


def _analyst(analyst: AnalystRole, query: Release) -> Program[list[NDArray[np.int64]]]:
    if analyst.joined is None:
        raise ValueError("the study must be committed before tables are released")
    plan = release_plan(analyst.joined, query)
    products, sites = plan.counted.products, plan.study.sites
    if query.again:
        cells = yield from open_kept(plan)
    else:
        cells = yield from open_sum(sites, plan.ring, products.cells)
    multiplied = iter(tables_of(products, plan.read(cells)))
    shuffled = iter((yield from open_shuffled(plan.counted.shuffles)))
    tables = [next(shuffled if way else multiplied) for way in plan.counted.shuffled]
    analyst.ledger.open(revealed_tables(plan, analyst.party))
    note_asked(analyst, query.parties)
    families = [family for group in plan.groups for family in group.families]
    released = dict(zip(families, tables, strict=True))
    return [released[family] for family in plan.tables.families]


RELEASE = (
    Conversation(Release, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
