"""``vertibayes approve``: the owner of a site reads what a study takes from it, and approves it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path

from vertibayes.cli.confirming import agree
from vertibayes.cli.contracts import contract_of
from vertibayes.cli.what_leaves import own_variables, predicted_from, what_leaves
from vertibayes.contract import most_bits, steps_of_contract, widest
from vertibayes.words import counted
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.deployment.approvals import (
    Approval,
    approvals_in,
    path_of,
    read_approval,
    withdraw,
    write_approval,
)
from vertibayes_protocols.deployment.checks import check_matching
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile, StudyFile, own_keys
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.queries import Predict
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.memory import Beside, SiteMemory


def run_approve(
    study: Path, site: Path, by: str | None, yes: bool, digest: str | None = None
) -> None:
    """Show what a study takes from a site, and approve it if its owner agrees."""
    if by is not None and not by.strip():
        raise ValueError(f"--by must name who approves, got {by!r}")
    own = SiteFile.read(site)
    contract = approvable(StudyFile.read(study), own)
    data = None if contract.rule is None or contract.rule.is_noisy else read_data(own)
    beside = _beside_earlier(contract, own, data)
    sys.stdout.write(what_leaves(contract, own, beside.differences, data))
    path = path_of(own.approved, contract.digest)
    if path.exists() and (not beside.differences or read_approval(path).data == beside.data):
        sys.stdout.write(f"\n{own.party} has approved this study before: nothing is changed\n")
        return
    if not yes:
        agree(contract.digest, digest, study, "approve", "the analyst")
    date = datetime.now(UTC).date().isoformat()
    approved = beside.data if beside.differences else b""
    path = write_approval(own.approved, Approval(contract, by or getuser(), date, approved))
    sys.stdout.write(f"\nApproved: {path}\n")
    if own.policy.free_tables:
        sys.stdout.write(
            f"warning: {site} sets free_tables = true: this site also answers all other queries\n"
        )


def _beside_earlier(contract: Contract, own: SiteFile, data: SiteData | None) -> Beside:
    """Return how a site's data differ from those of earlier studies, if counts without noise leave.

    Tables of two such studies show the people who differ: the owner approves both, or neither.
    """
    if data is None or not own.memory.exists():
        return Beside(b"", ())
    return SiteMemory.read(own.memory).beside_earlier(data, own_variables(contract, own))


def approvable(file: StudyFile, own: SiteFile) -> Contract:
    """Return the contract of a study, or refuse one that a site would not take part in."""
    if own.party not in file.sites:
        raise file.source.error(("sites",), f"{own.party}, this site, is not among the sites")
    if file.party not in own.analysts:
        names = ", ".join(own.analysts)
        reason = f"{file.party!r} is not an analyst that {own.source.path} pins: {names}"
        raise file.source.error(("analyst", "name"), reason)
    if file.dealer != own.dealer:
        reason = f"{file.dealer!r} is not the dealer that {own.source.path} pins: {own.dealer!r}"
        raise file.source.error(("dealer", "name"), reason)
    for party, key in file.pinned.items():
        if party != own.party and own.pinned.get(party) != key:
            where = ("dealer", "public_key") if party == file.dealer else ("sites", party)
            theirs = encode_public(own.pinned[party]) if party in own.pinned else "no key"
            reason = (
                f"{own.source.path} pins {theirs} of {party}: the two must be equal"
                f"{_epochs(file, own)}"
            )
            raise file.source.error(where, reason)
    if file.pinned[own.party] != (key := own_keys(own).public):
        reason = f"it is not the public key of this site: {encode_public(key)}"
        raise file.source.error(("sites", own.party), reason)
    if file.alignment is not None:
        check_matching(file, own)
    contract = contract_of(file, own.analysts[file.party])
    if not own_variables(contract, own):
        reason = f"{own.party} offers none of them; it offers {', '.join(own.variables)}"
        raise file.source.error(("study", "variables"), reason)
    if contract.queries:
        _check_scores(contract, file, own)
        return contract
    _ = steps_of_contract(contract)  # which checks that the site can follow it
    _check_policy(contract, file, own)
    return contract


def _check_scores(contract: Contract, file: StudyFile, own: SiteFile) -> None:
    """Refuse predictions of more records than the policy of a site allows."""
    allowed = own.policy.most_scores
    for query in contract.queries:
        if query["kind"] != Predict.kind:
            continue
        odds, last = query["fields"]["odds"], query["fields"]["rows"]["last"]
        if set(own.variables).isdisjoint(predicted_from(odds)):
            continue
        if (last or 1) > allowed:
            records = "all records" if last is None else counted(last, "record")
            reason = (
                f"the posteriors of {records} would be revealed: the policy of {own.party} has "
                f"most_scores = {allowed}"
            )
            raise file.source.error(("learning", "target"), reason)


def _epochs(file: StudyFile, own: SiteFile) -> str:
    """Return which rosters a study and a site have pinned, if they are not the same."""
    if file.roster == own.roster:
        return ""
    titles = [f.roster.title if f.roster else "no roster" for f in (file, own)]
    return f"; the study has pinned {titles[0]}, this site {titles[1]}"


def _check_policy(contract: Contract, file: StudyFile, own: SiteFile) -> None:
    """Refuse a study whose tables or choices the policy of a site does not allow."""
    if (needed := widest(contract)) > (most := own.policy.most_variables):
        reason = (
            f"the study needs tables of {counted(needed, 'variable')}: the policy of {own.party} "
            f"allows {most}; set max_parents = {max(most - 1, 0)}"
        )
        raise file.source.error(("learning", "max_parents"), reason)
    if (bits := most_bits(contract)) > (allowed := own.policy.most_choice_bits):
        reason = (
            f"the winners of the study's choices have up to {bits:,.0f} bits: the policy of "
            f"{own.party} allows {allowed:,}; use fewer variables, or with algorithm hybrid or "
            "hill_climbing state at most so many as most_bits"
        )
        raise file.source.error(("learning", "max_parents"), reason)


def run_list(site: Path) -> None:
    """Print the approvals of a site, and its policy."""
    own = SiteFile.read(site)
    mode = "any query within its policy" if own.policy.free_tables else "approved studies alone"
    sys.stdout.write(f"{own.party} answers {mode}\n")
    for path in approvals_in(own.approved):
        approval = read_approval(path)
        rule, runs = approval.contract.rule, approval.contract.runs
        sys.stdout.write(
            f"{grouped_digest(approval.contract.digest)}\n"
            f"    approved by {approval.approver} on {approval.date}; "
            f"{counted(len(approval.contract.variables), 'variable')}, "
            f"rule {rule.kind if rule else 'none'}, {counted(runs, 'run')}\n"
        )


def run_withdraw(site: Path, digest: str) -> None:
    """Withdraw an approval; a run stops at its next query."""
    path = withdraw(SiteFile.read(site).approved, digest)
    sys.stdout.write(f"Withdrawn: {path}\n")
