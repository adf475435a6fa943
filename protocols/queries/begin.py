"""Begin: a session runs an approved study, and every later query is the next one of that study.

    analyst -> sites    Begin: the digest of the contract
    site -> analyst     Begun

A site refuses a digest that its owner has not approved, a contract whose parties or keys are not
those that the site pins, and a run beyond the number of the contract. A run is used up when its
release begins. Runs that begin and release nothing are limited too (`most_failed_runs`): a party
that lies could learn from each of them whether it failed.

Security: the analyst's name and key are in the contract, and the transport proves the key.
Leakage: whether a contract is approved at a site, to an analyst who knows the contract's digest.
Cost: 1 round.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from mpc.rounds import Expect, Message, Party, Program, exchange, send
from protocols.approval import Approved
from protocols.contract import DIGEST_BYTES, Contract, grouped_digest
from protocols.errors import QueryRefusedError
from protocols.queries.approved_run import ApprovedRun
from protocols.queries.declared_run import DeclaredRun
from protocols.roles import AnalystRole, SiteRole
from protocols.session import Conversation, Query


@dataclass(frozen=True, slots=True)
class Begin(Query[None]):
    """Ask the sites of a study to run it; `contract` is the digest of its contract."""

    kind: ClassVar[str] = "begin"
    contract: bytes

    @classmethod
    def of(cls, contract: Contract, absent: Collection[Party] = ()) -> Begin:
        """Return the query that begins a run of a contract with all its sites but the absent."""
        present = tuple(site for site in contract.site_names if site not in absent)
        return cls(present, contract.digest)


@dataclass(frozen=True, slots=True)
class Begun(Message):
    """The sender answers the queries of the study."""

    kind: ClassVar[str] = "begun"


def _consider(site: SiteRole, query: Begin) -> None:
    approved = _approved(site, query)
    sites = set(approved.contract.site_names)
    all_are_needed = not approved.contract.queries  # of sums, some sites may be absent
    if not sites >= set(query.parties) or (all_are_needed and len(query.parties) < len(sites)):
        raise QueryRefusedError(site.party, "the query asks other parties than the study's sites")
    if wrong := _wrong_party(site, approved.contract):
        reason = f"{wrong} of the approved contract is not the one that is pinned here"
        raise QueryRefusedError(site.party, reason)
    _check_runs(site, approved.contract)


def _approved(site: SiteRole, query: Begin) -> Approved:
    """Return the approval of a digest, or refuse the query."""
    known = len(query.contract) == DIGEST_BYTES
    try:
        approved = site.approvals(query.contract) if known else None
    except ValueError as error:
        reason = "the approval of this study cannot be used here: its owner can approve it again"
        raise QueryRefusedError(site.party, reason, str(error)) from None
    if approved is None:
        reason = (
            f"the study with the digest {grouped_digest(query.contract[:DIGEST_BYTES])} is not "
            "approved here: its owner can approve study.toml with `vertibayes approve`"
        )
        raise QueryRefusedError(site.party, reason)
    return approved


def _wrong_party(site: SiteRole, contract: Contract) -> str:
    """Return which party of a contract differs from those that a site has pinned; else nothing."""
    if contract.analyst != (site.analyst, site.analyst_key):
        return f"the analyst {contract.analyst[0]}"
    if contract.dealer != (site.dealer, site.public_keys.get(site.dealer)):
        return f"the dealer {contract.dealer[0]}"
    known = {**site.public_keys, site.party: site.keys.public}
    for name, key in contract.sites:
        if name == site.dealer or known.get(name) != key:
            return f"the site {name}"
    return "" if site.party in contract.site_names else f"the site {site.party}"


def _check_runs(site: SiteRole, contract: Contract) -> None:
    begun, used = site.memory.runs(contract.digest)
    if used >= contract.runs:
        runs = "its one run is" if contract.runs == 1 else f"its {contract.runs} runs are"
        raise QueryRefusedError(site.party, f"{runs} used up: the study has released its tables")
    if begun - used >= (most := site.policy.most_failed_runs):
        reason = (
            f"{most} runs of the study began and released nothing, which can be an attack: if you "
            "know why they failed, increase most_failed_runs in the policy"
        )
        raise QueryRefusedError(site.party, reason)


def _site(site: SiteRole, query: Begin) -> Program[None]:
    approved = _approved(site, query)
    is_declared = bool(approved.contract.queries)
    site.run = DeclaredRun(site, approved) if is_declared else ApprovedRun(site, approved)
    begun, used = site.memory.runs(query.contract)
    study = grouped_digest(query.contract)
    what = (
        f"run {begun + 1} of the study {study}, approved by {approved.approver} on "
        f"{approved.date}; {used} of {approved.contract.runs} runs used"
    )
    site.ledger.note(what, site.party, (site.analyst,))
    yield from send({site.analyst: Begun()})


def _analyst(analyst: AnalystRole, query: Begin) -> Program[None]:
    yield from exchange({}, dict.fromkeys(query.parties, Expect(Begun)))
    what = f"a run of the study {grouped_digest(query.contract)}"
    analyst.ledger.note(what, analyst.party, query.parties)


BEGIN = Conversation(Begin, _analyst).side(SiteRole, _consider, _site)
