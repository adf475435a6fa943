"""``vertibayes approve``: the owner of a site reads what a study takes from it, and approves it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path

from protocols.contract import Contract, grouped_digest
from protocols.deployment.approvals import (
    Approval,
    approvals_in,
    path_of,
    read_approval,
    withdraw,
    write_approval,
)
from protocols.deployment.files import SiteFile, StudyFile, own_keys
from protocols.errors import printable
from protocols.public_keys import encode_public
from vertibayes.cli.contracts import contract_of
from vertibayes.contract import most_bits, steps_of_contract, widest
from vertibayes.report.words import counted

FIRST_GROUP = 4  # digits of the digest, which the owner types


def run_approve(study: Path, site: Path, by: str | None, yes: bool) -> None:
    """Show what a study takes from a site, and approve it if its owner agrees.

    Parameters
    ----------
    study, site : Path
        The analyst's file of the study, and the site's own file.
    by : str or None
        Who approves; the name of the user of this machine if None.
    yes : bool
        Whether to approve without a question.

    Raises
    ------
    ValueError
        If a file cannot be used, the study does not fit the site, or nobody can be asked.
    """
    own = SiteFile.read(site)
    contract = approvable(StudyFile.read(study), own)
    sys.stdout.write("".join(f"{printable(line)}\n" for line in what_leaves(contract, own)))
    if path_of(own.approved, contract.digest).exists():
        sys.stdout.write(f"\n{own.party} has approved this study before: nothing is changed\n")
        return
    if not yes:
        _confirm(contract)
    date = datetime.now(UTC).date().isoformat()
    path = write_approval(own.approved, Approval(contract, by or getuser(), date))
    sys.stdout.write(f"\nApproved: {path}\n")
    if own.policy.free_tables:
        sys.stdout.write(
            f"warning: {site} sets free_tables = true: this site also answers all other queries\n"
        )


def approvable(file: StudyFile, own: SiteFile) -> Contract:
    """Return the contract of a study, or refuse one that a site would not take part in.

    Raises
    ------
    ValueError
        If the parties are not those that the site pins, the site has no variable of the study, or
        its policy does not allow the tables; the message names the file and the key.
    """
    if own.party not in file.sites:
        raise file.source.error(("sites",), f"{own.party}, this site, is not among the sites")
    if file.party != own.analyst:
        reason = f"{file.party!r} is not the analyst that {own.source.path} pins: {own.analyst!r}"
        raise file.source.error(("analyst", "name"), reason)
    if file.dealer != own.dealer:
        reason = f"{file.dealer!r} is not the dealer that {own.source.path} pins: {own.dealer!r}"
        raise file.source.error(("dealer", "name"), reason)
    for party, key in file.pinned.items():
        if party != own.party and own.pinned.get(party) != key:
            where = ("dealer", "public_key") if party == file.dealer else ("sites", party)
            theirs = encode_public(own.pinned[party]) if party in own.pinned else "no key"
            reason = f"{own.source.path} pins {theirs} of {party}: the two must be equal"
            raise file.source.error(where, reason)
    if file.pinned[own.party] != (key := own_keys(own).public):
        reason = f"it is not the public key of this site: {encode_public(key)}"
        raise file.source.error(("sites", own.party), reason)
    contract = contract_of(file, own.pinned[own.analyst])
    _ = steps_of_contract(contract)  # which checks that the site can follow it
    if not own_variables(contract, own):
        reason = f"{own.party} offers none of them; it offers {', '.join(own.variables)}"
        raise file.source.error(("study", "variables"), reason)
    if (needed := widest(contract)) > (most := own.policy.most_variables):
        reason = (
            f"the study needs tables of {counted(needed, 'variable')}: the policy of {own.party} "
            f"allows {most}"
        )
        raise file.source.error(("learning", "max_parents"), reason)
    return contract


def own_variables(contract: Contract, own: SiteFile) -> list[str]:
    """Return the variables of a contract that a site offers."""
    return [name for name in contract.variables if name in own.variables]


def what_leaves(contract: Contract, own: SiteFile) -> Iterator[str]:
    """Yield, line by line, what would leave a site, and to whom."""
    mine = own_variables(contract, own)
    analyst, others = contract.analyst[0], [s for s in contract.site_names if s != own.party]
    runs = "once" if contract.runs == 1 else f"{contract.runs} times"
    yield f"Study of {analyst} with {', '.join(contract.site_names)}; dealer: {contract.dealer[0]}"
    yield f"Digest: {grouped_digest(contract.digest)}"
    yield f"Compare it with {analyst} by telephone: `vertibayes check study.toml` prints it there."
    yield ""
    yield f"Of this site, {own.party}: {', '.join(mine)}"
    if unused := [name for name in own.variables if name not in mine]:
        yield f"  not used: {', '.join(unused)}"
    yield ""
    yield f"{analyst} learns, {runs}:"
    yield "- the number of records; of each variable the name, the states, whether values are missing"
    yield from _learned(contract)
    yield from _released(contract)
    yield ""
    if others:
        yield f"{', '.join(others)} learn: the same without the tables, and whether the people differ"
    yield f"{contract.dealer[0]} learns: the same as the sites, without the choices"
    yield "Nobody receives a record or an identifier."
    yield ""
    yield from _unprotected(contract)


def _learned(contract: Contract) -> Iterator[str]:
    learning = contract.options["learning"]
    if learning["structure"] is not None:
        yield "- no choice: the study states the parents of each variable"
        return
    over = "all records"
    if learning["structure_records"] is not None:
        over = f"a random sample of {learning['structure_records']:,} records"
    yield (
        f"- which parents, at most {learning['max_parents']}, predict each variable best, over "
        f"{over}: at most {most_bits(contract):,.0f} bits in all; no count"
    )


def _released(contract: Contract) -> Iterator[str]:
    number = len(contract.variables)
    yield (
        f"- {counted(number, 'table')} of counts over all records: one for each variable with its "
        f"parents, at most {counted(widest(contract), 'variable')} in a table"
    )
    if contract.options["learning"]["missing"] != "available":
        yield "  a missing value counts as a state of its own"
    rule = contract.rule
    assert rule is not None  # as `contract_of` checks
    words = {
        "exact": "the counts are exact",
        "cut": f"a count below {rule.fewest} is released as 0; the other counts are exact",
        "laplace": f"the counts have Laplace noise, epsilon {rule.epsilon:g} for all tables",
        "gaussian": (
            f"the counts have Gaussian noise, epsilon {rule.epsilon:g} and delta {rule.delta:g} "
            "for all tables"
        ),
    }
    yield f"  rule {rule.kind}: {words[rule.kind]}"


def _unprotected(contract: Contract) -> Iterator[str]:
    rule = contract.rule
    assert rule is not None  # as `contract_of` checks
    yield "What the rule does not protect:"
    if rule.kind == "exact":
        yield "- a count of 1 singles out a person, whose values in that table are then known"
    if rule.kind == "cut":
        yield (
            f"- counts from {rule.fewest} on are exact; tables that share variables can give back "
            "some counts that were cut"
        )
        yield "- two studies over data that differ by few people can show what these people have"
    if rule.is_noisy:
        yield "- the choice of parents has no noise: epsilon is the promise of the tables alone"
    if rule.dishonest:
        yield f"- more than {rule.dishonest:.0%} of the sites working with the analyst"
    yield "- a site that lies about its own columns: it can change what is chosen and released"


def _confirm(contract: Contract) -> None:
    """Ask for the first digits of the digest: who types them has looked at it."""
    if not sys.stdin.isatty():
        raise ValueError("nobody can be asked, as this is no terminal: use --yes to approve")
    first = contract.digest.hex()[:FIRST_GROUP]
    sys.stdout.write(
        f"\nTo approve, type the first {FIRST_GROUP} digits of the digest that the analyst has "
        "read to you: "
    )
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() != first:
        raise ValueError("not approved: these are not the first digits of this study's digest")


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
