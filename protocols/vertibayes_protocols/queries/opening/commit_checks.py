"""What a party compares of a study before it commits: parties, records, variables."""

from __future__ import annotations

from dataclasses import replace

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.errors import DataError, QueryRefusedError
from vertibayes_protocols.record_checks import compare_values
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Variable


def check_at_site(site: SiteRole, study: Study) -> None:
    """Refuse a study that is not as a site has pinned, declared or aligned it."""
    if site.party not in study.sites:
        raise ValueError("it holds no variable of the study")
    site.policy.check_way(study.count_by)
    strangers = set(study.parties) - set(site.public_keys) - {site.party}
    if study.dealer not in ("", site.dealer) or site.dealer in study.sites or strangers:
        known = ", ".join(sorted((site.dealer, *site.public_keys)))
        reason = "the dealer of the study, or one of its sites, is not pinned here"
        raise QueryRefusedError(site.party, reason, f"pinned are the dealer {site.dealer}; {known}")
    _check_records(site, study)
    mine = site.own(study)
    for name in mine:
        _check_variable(site, study.variables[name], study.holders[name])
    if site.run is not None and not site.run.approved.contract.queries and {*mine} != {*site.shown}:
        raise ValueError(f"{site.party} holds other variables of the contract than the query says")
    try:
        site.memory.check(study.id, {name: site.column(name) for name in mine})
    except DataError as error:
        raise QueryRefusedError(site.party, str(error)) from None
    if site.run is not None and site.run.approved.is_compared:
        compare_values(site, study)


def check_at_dealer(dealer: DealerRole, study: Study) -> None:
    """Refuse a study of sites that the dealer does not know, or of too many records."""
    if unknown := set(study.sites) - set(dealer.public_keys):
        raise ValueError(f"it has no public key of the sites {', '.join(sorted(unknown))}")
    if study.records > (most := dealer.most_records):
        raise ValueError(f"the study has {study.records} records; at most {most} are allowed")


def _check_records(site: SiteRole, study: Study) -> None:
    """Refuse a study whose records are not those of the site, or those that an alignment placed."""
    _check_aligned(site, study)
    strange = set(study.sites) - site.met - {site.party}
    if strange and (site.data.ids is not None or site.ledger.head):  # `Meet` compares ledgers too
        named = ", ".join(sorted(strange))
        raise ValueError(
            f"its records were not compared with those of {named}, or are not the same"
        )
    if study.records != site.records:
        reason = f"it does not hold {study.records} records, as the study has"
        raise QueryRefusedError(site.party, reason, f"it holds {site.records} records")


def _check_aligned(site: SiteRole, study: Study) -> None:
    """Refuse a study whose people are not those that were aligned in this session."""
    if site.people is not None and site.people.study not in (b"", study.id):
        raise ValueError("its people were aligned for another study")
    if site.hidden is not None:
        site.hidden.check(study)
    elif study.alignment:
        raise ValueError(
            "the people of the study were not aligned in this session: align them first"
        )


def _check_apart(site: SiteRole, name: str, holders: tuple[Party, ...]) -> None:
    """Refuse holders of a variable that may hold the same people: both codes would be counted."""
    if site.people is None or not site.people.study:
        return  # the places come from no alignment
    apart = {frozenset(pair) for pair in site.people.apart}
    for peer in holders:
        if peer != site.party and frozenset((site.party, peer)) not in apart:
            raise ValueError(
                f"{site.party} and {peer} hold the variable {name!r} and may hold the same people: "
                f'add ["{site.party}", "{peer}"] to `apart` in [alignment]'
            )


def _check_variable(site: SiteRole, variable: Variable, holders: tuple[Party, ...]) -> None:
    """Refuse a variable that the site does not show, or shares without an alignment."""
    name, shown = variable.name, site.shown.get(variable.name)
    is_shared = len(holders) > 1 and site.hidden is None
    if is_shared and site.placement is None:
        raise ValueError(
            f"the variable {name!r} lies at {', '.join(holders)}, and the study does not align "
            "their records: declare [alignment] in study.toml"
        )
    if is_shared:
        _check_apart(site, name, holders)
    if shown is not None and is_shared:
        shown = replace(shown, missing=True)
    if shown != variable:
        raise ValueError(f"it shows no variable {name!r} with these states")
