"""The query `Commit`, and what a party checks before it agrees to a study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import DataError, QueryRefusedError, refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.tables.costs import Costs
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.session import Query
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Variable

MOST_BLOCK_ROWS = 1 << 20
MOST_INDICATORS_OF_ALL = 255  # wider columns would take more bytes than all others


@dataclass(frozen=True, slots=True)
class Commit(Query[Joined]):
    """Ask sites to commit the variables of a study: name, states, missing values, holders."""

    kind: ClassVar[str] = "commit"
    study: bytes
    dealer: str
    records: int
    block_rows: int
    memory: int
    most_indicators: int
    alignment: bytes
    variables: tuple[tuple[str, tuple[str, ...], bool, tuple[str, ...]], ...]

    @classmethod
    def of(cls, study: Study) -> Commit:
        """Return the query for a study."""
        variables = tuple(
            (v.name, v.states, v.missing, study.holders[v.name]) for v in study.variables.values()
        )
        sizes = study.records, study.block_rows, study.memory, study.most_indicators
        return cls(study.parties, study.id, study.dealer, *sizes, study.alignment, variables)

    def as_study(self) -> Study:
        """Return the study.

        Raises
        ------
        ValueError
            If a variable appears twice, has fewer than two codes, no holder or a holder twice.
        """
        variables = {name: Variable(name, states, m) for name, states, m, _ in self.variables}
        holders = {name: tuple(sorted(sites)) for name, _, _, sites in self.variables}
        if len(variables) < len(self.variables) or not variables:
            raise ValueError(
                "the study has no variables, or a variable appears twice; name each variable once"
            )
        wrong = (len(set(holders[n])) < max(len(holders[n]), 1) for n in variables)
        if any(wrong) or any(v.codes < 2 for v in variables.values()):
            raise ValueError(
                "a variable of the study has fewer than two states, no holder, or a holder twice"
            )
        if not 16 <= self.block_rows <= MOST_BLOCK_ROWS or self.block_rows % 16:
            raise ValueError(
                f"blocks must have 16 to {MOST_BLOCK_ROWS} rows, a multiple of 16; "
                f"got {self.block_rows}"
            )
        if not 1 <= self.most_indicators <= MOST_INDICATORS_OF_ALL:
            raise ValueError(
                f"columns must have between 1 and {MOST_INDICATORS_OF_ALL} indicators at most, got "
                f"{self.most_indicators}"
            )
        Ring.holding(self.records)
        sizes = self.block_rows, self.memory, self.most_indicators
        records = self.records, self.dealer
        study = Study(self.study, variables, holders, *records, *sizes, self.alignment)
        if set(self.parties) != {*study.sites, self.dealer}:
            raise ValueError(
                "the query asks other parties than the holders and the dealer; ask these only"
            )
        return study


def _study(party: Party, policy: Policy, query: Commit) -> Study:
    if query.memory > policy.most_memory:
        reason = (
            f"the study's queries take up to {query.memory:,} bytes of memory at a party; at most "
            f"{policy.most_memory:,} are allowed here"
        )
        raise QueryRefusedError(party, reason)
    with refusing(party):
        study = query.as_study()
    stored = Costs(study, study.records, missing=True).stored_bytes
    policy.check_stored(party, stored)
    if study.dealer in study.sites:
        raise QueryRefusedError(party, f"the dealer {study.dealer} is also a site of the study")
    return study


def consider_at_site(site: SiteRole, query: Commit) -> None:
    """Refuse a study that is not as a site has pinned, declared or aligned it, or allows it."""
    study = _study(site.party, site.policy, query)
    if site.party not in study.sites:
        raise QueryRefusedError(site.party, "it holds no variable of the study")
    strangers = set(query.parties) - set(site.public_keys) - {site.party}
    if study.dealer != site.dealer or strangers:
        known = ", ".join(sorted((site.dealer, *site.public_keys)))
        reason = "the dealer of the study, or one of its sites, is not pinned here"
        raise QueryRefusedError(site.party, reason, f"pinned are the dealer {site.dealer}; {known}")
    _check_records(site, study)
    mine = site.own(study)
    for name in mine:
        _check_variable(site, study.variables[name], study.holders[name])
    try:
        site.memory.check(study.id, {name: site.column(name) for name in mine})
    except DataError as error:
        raise QueryRefusedError(site.party, str(error)) from None
    others = tuple(party for party in query.parties if party != site.party)
    site.ledger.note("record count, names and states of variables", site.party, others)


def _check_records(site: SiteRole, study: Study) -> None:
    """Refuse a study whose records are not those of the site, or those that an alignment placed."""
    _check_aligned(site, study)
    strange = set(study.sites) - site.met - {site.party}
    if site.data.ids is not None and strange:
        named = ", ".join(sorted(strange))
        reason = f"its records were not compared with those of {named}, or are not the same"
        raise QueryRefusedError(site.party, reason)
    if study.records != site.records:
        reason = f"it does not hold {study.records} records, as the study has"
        raise QueryRefusedError(site.party, reason, f"it holds {site.records} records")


def _check_aligned(site: SiteRole, study: Study) -> None:
    """Refuse a study whose people are not those that were aligned in this session."""
    if site.people is not None and site.people.study not in (b"", study.id):
        raise QueryRefusedError(site.party, "its people were aligned for another study")
    if site.hidden is not None:
        with refusing(site.party):
            site.hidden.check(study)
    elif study.alignment:
        reason = "the people of the study were not aligned in this session: align them first"
        raise QueryRefusedError(site.party, reason)


def _check_apart(site: SiteRole, name: str, holders: tuple[Party, ...]) -> None:
    """Refuse holders of a variable that may hold the same people: both codes would be counted."""
    if site.people is None or not site.people.study:
        return  # the places come from no alignment
    apart = {frozenset(pair) for pair in site.people.apart}
    for peer in holders:
        if peer != site.party and frozenset((site.party, peer)) not in apart:
            reason = (
                f"{site.party} and {peer} hold the variable {name!r} and may hold the same people: "
                f'add ["{site.party}", "{peer}"] to `apart` in [alignment]'
            )
            raise QueryRefusedError(site.party, reason)


def _check_variable(site: SiteRole, variable: Variable, holders: tuple[Party, ...]) -> None:
    """Refuse a variable that the site does not show, or shares without an alignment."""
    name, shown = variable.name, site.shown.get(variable.name)
    is_shared = len(holders) > 1 and site.hidden is None
    if is_shared and site.placement is None:
        reason = (
            f"the variable {name!r} lies at {', '.join(holders)}, and the study does not align "
            "their records: declare [alignment] in study.toml"
        )
        raise QueryRefusedError(site.party, reason)
    if is_shared:
        _check_apart(site, name, holders)
    if shown is not None and is_shared:
        shown = replace(shown, missing=True)
    if shown != variable:
        raise QueryRefusedError(site.party, f"it shows no variable {name!r} with these states")


def consider_at_dealer(dealer: DealerRole, query: Commit) -> None:
    """Refuse a study of other parties than the dealer knows, or one that is too large."""
    study = _study(dealer.party, dealer.policy, query)
    unknown = set(study.sites) - set(dealer.public_keys)
    if study.dealer != dealer.party:
        reason = f"it is not the dealer of the study, which names {study.dealer}"
        raise QueryRefusedError(dealer.party, reason)
    if unknown:
        reason = f"it has no public key of the sites {', '.join(sorted(unknown))}"
        raise QueryRefusedError(dealer.party, reason)
    if study.records > dealer.most_records:
        reason = f"the study has {study.records} records; at most {dealer.most_records} are allowed"
        raise QueryRefusedError(dealer.party, reason)
