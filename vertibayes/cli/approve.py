"""``vertibayes approve``: the owner of a site reads what a study takes from it, and approves it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from getpass import getuser
from pathlib import Path

from vertibayes.cli.confirming import agree
from vertibayes.cli.contracts import check_addressed, check_approvable, contract_of
from vertibayes.cli.decisions import UNDECIDED, WAITS, Sheet
from vertibayes.cli.what_leaves import noises_of, own_variables
from vertibayes.contract import most_bits, steps_of_contract, widest
from vertibayes.words import counted
from vertibayes_protocols.approval import today
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.deployment.approvals import (
    DECLINED,
    TEXTS,
    Approval,
    approvals_in,
    as_date,
    consented,
    missing_consent,
    path_of,
    read_approval,
    read_declined,
    withdraw,
    write_approval,
)
from vertibayes_protocols.deployment.checks import check_matching
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile, StudyFile, own_keys, second_keys
from vertibayes_protocols.errors import printable
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.queries.opening.needs import Need, needs_of
from vertibayes_protocols.record_checks import RARE
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.memory import Beside, SiteMemory
from vertibayes_protocols.storage.whole_file import NewerFormatError

BUDGETS = {  # where a study states what exceeds a budget, and what to do
    "most_choice_bits": (
        ("learning", "max_parents"),
        "; use fewer variables, or with algorithm hybrid or hill_climbing state at most so many as "
        "most_bits",
    ),
    "most_scores": (("learning", "target"), ""),
    "most_epsilon": (("release", "rule"), ""),
}


def run_approve(
    study: Path,
    site: Path,
    by: str | None,
    yes: bool,
    digest: str | None = None,
    page: Path | None = None,
    second: Path | None = None,
    **texts: str | None,
) -> None:
    """Show what a study takes from a site, and approve it if its owner agrees.

    An earlier approval of the study keeps its purpose, permit and last day unless `texts` has
    others. With `second`, a private key, its owner consents to the approval that there is.
    """
    own, file = SiteFile.read(site), StudyFile.read(study)
    keys = None if second is None else second_keys(own, second)
    contract, data = approvable(file, own), read_data(own)
    memory = SiteMemory.read(own.memory) if own.memory.exists() else SiteMemory()
    _check_noise(contract, file, own, memory)
    _check_data(contract, file, own, data)
    needs = _check_budgets(contract, file, own, memory, data)
    earlier = _earlier(path_of(own.approved, contract.digest))
    beside = _beside_earlier(contract, own, memory, data)
    who = by or getuser()
    new = _proposed(contract, who, data, earlier, texts)
    new = new._replace(data=beside.data if beside.differences else b"")
    if earlier is not None and _is_approved(earlier, new):
        new = earlier
    if keys is not None:
        _check_consent(own, new is earlier, new, who)
    facts = {"differences": beside.differences, "earlier": earlier, "needs": needs}
    sheet = Sheet.of(new, own, memory, data=data, **facts)
    sheet.show()
    sheet.write(page, UNDECIDED)
    is_known = new is earlier and keys is None
    if digest is not None or not (yes or is_known):
        agree(contract.digest, digest, study, "approve", "the analyst")
    if is_known:
        sys.stdout.write(f"\n{own.party} has approved this study before: nothing is changed\n")
    else:
        new = new if keys is None else consented(new, own.party, who, today(), keys)
        sys.stdout.write(f"\nApproved: {write_approval(own.approved, new)}\n")
    if waits := _waits(own, new):
        sys.stdout.write(f"It {WAITS}: `vertibayes approve study.toml --second KEY`\n")
    sheet.write(page, f"Approved by {new.approved().words}{f'; it {WAITS}' if waits else ''}.")
    if own.policy.free_tables:
        sys.stdout.write(
            f"warning: {site} sets free_tables = true: this site also answers all other queries\n"
        )


def _proposed(
    contract: Contract,
    by: str,
    data: SiteData,
    earlier: Approval | None,
    texts: Mapping[str, str | None],
) -> Approval:
    """Return the approval that is proposed, with what is given or what an earlier one has."""
    return Approval(
        contract,
        by,
        today(),
        purpose=texts.get("purpose") or (earlier.purpose if earlier else ""),
        until=_last_day(texts.get("until"), earlier),
        version=data.version(contract.variables),
        permit=texts.get("permit") or (earlier.permit if earlier else ""),
    )


def _check_consent(own: SiteFile, is_approved: bool, approval: Approval, by: str) -> None:
    """Refuse a second person's consent to nothing, or by the person who approved."""
    if not is_approved:
        raise ValueError(
            f"{own.party} has no approval of this study with these data, purpose, permit and last "
            "day: its owner approves it first, without --second"
        )
    if approval.approver == by:
        raise ValueError(f"--by: {by} has approved the study; the second person is another one")


def _waits(own: SiteFile, approval: Approval) -> bool:
    """Whether an approval still needs the consent of a second person."""
    return bool(own.second and missing_consent(approval, own.party, own.second))


def _earlier(path: Path) -> Approval | None:
    """Return an earlier approval of the study; None without one that can be read."""
    try:
        return read_approval(path) if path.exists() else None
    except NewerFormatError:
        raise
    except ValueError:
        return None


def _is_approved(earlier: Approval, new: Approval) -> bool:
    """Whether an earlier approval says the same; data that need no approval may have one."""
    texts = all(getattr(earlier, name) == getattr(new, name) for name in TEXTS)
    return texts and new.data in (b"", earlier.data)


def _last_day(given: str | None, earlier: Approval | None) -> str:
    """Return the last day of an approval, or refuse one that is past; empty without one."""
    try:
        until = (earlier.until if earlier else "") if given is None else as_date(given)
    except ValueError as error:
        raise ValueError(f"--until: {error}") from None
    if until and until < today():
        raise ValueError(f"--until: the approval would have ended on {until}; specify a later day")
    return until


def _check_noise(contract: Contract, file: StudyFile, own: SiteFile, memory: SiteMemory) -> None:
    """Refuse noise that the site's policy does not allow, before a run shows winners."""
    rule, policy = contract.rule, own.policy
    try:
        for is_noisy in noises_of(contract):
            policy.check_alone(memory.spent, memory.left_plain, is_noisy=is_noisy)
        if rule is not None and rule.is_noisy:
            policy.check_dishonest(rule.dishonest)
    except ValueError as error:
        raise file.source.error(("release", "rule"), f"{own.party} refuses: {error}") from None


def _check_budgets(
    contract: Contract, file: StudyFile, own: SiteFile, memory: SiteMemory, data: SiteData
) -> list[Need]:
    """Return what a run takes of the site's budgets; refuse more than is left, as its run does."""
    if memory.runs.count(contract.digest)[1] >= contract.runs:
        return []
    steps = None if contract.queries else steps_of_contract(contract)
    approved = Approval(contract, "", "").approved(steps)
    states = {name: len(data.variables[name].states) for name in own_variables(contract, own)}
    unfinished = memory.runs.unfinished(contract.digest)
    needs = needs_of(approved, own.policy, memory, states, data.records, unfinished)
    for need in needs:
        if need.reason:
            place, instead = BUDGETS.get(need.limit, (("study", "variables"), ""))
            raise file.source.error(place, f"{own.party} refuses: {need.reason}{instead}")
    return needs


def _check_data(contract: Contract, file: StudyFile, own: SiteFile, data: SiteData) -> None:
    """Refuse a study that the site's data do not carry, which its run would refuse."""
    mine, rule, party = own_variables(contract, own), contract.rule, own.party
    gone, fewest = [n for n in mine if n in data.report.left_out], own.policy.fewest_records
    reason = ""
    if data.records < fewest:
        reason = f"{party} has {data.records} records: its policy has fewest_records = {fewest}"
    elif gone:
        reason = f"the data of {party} leave out {', '.join(gone)}: `vertibayes check` says why"
    elif rule is not None and rule.kind == "cut" and not own.policy.free_tables:
        rare = data.rare_states(mine, rule.fewest)
        reason = f"{', '.join(rare)}: {RARE.format(fewest=rule.fewest)}" if rare else ""
    if reason:
        raise file.source.error(("study", "variables"), reason)


def _beside_earlier(
    contract: Contract, own: SiteFile, memory: SiteMemory, data: SiteData
) -> Beside:
    """Return how a site's data differ from those of earlier studies beside which it refuses this.

    What two such studies show together are the people who differ: the owner approves both. Noisy
    tables of a given structure are compared with nothing.
    """
    rule = contract.rule
    has_choices = not contract.queries and most_bits(contract) > 0
    is_noise_alone = noises_of(contract) == {True} and not has_choices
    if not own.memory.exists() or is_noise_alone:
        return Beside(b"", ())
    name, fewest = "" if rule is None else rule.name, own.policy.fewest_records
    return memory.beside_earlier(data, name, fewest)


def approvable(file: StudyFile, own: SiteFile) -> Contract:
    """Return the contract of a study, or refuse one that a site would not take part in."""
    check_addressed(file, own)
    check_approvable(file)
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
    _check_floors(contract, file, own)
    if contract.queries:
        return contract
    _ = steps_of_contract(contract)  # which checks that the site can follow it
    _check_policy(contract, file, own)
    return contract


def _check_floors(contract: Contract, file: StudyFile, own: SiteFile) -> None:
    """Refuse a study beyond the floors of a site's policy."""
    for key, reason in own.policy.beyond(contract.rule, contract.runs):
        raise file.source.error(("release", key), f"{own.party} refuses: {reason}")


def _epochs(file: StudyFile, own: SiteFile) -> str:
    """Return which rosters a study and a site have pinned, if they are not the same."""
    if file.roster == own.roster:
        return ""
    titles = [f.roster.title if f.roster else "no roster" for f in (file, own)]
    return f"; the study has pinned {titles[0]}, this site {titles[1]}"


def _check_policy(contract: Contract, file: StudyFile, own: SiteFile) -> None:
    """Refuse a study whose tables the policy of a site does not allow."""
    if (needed := widest(contract)) > (most := own.policy.most_variables):
        reason = (
            f"the study needs tables of {counted(needed, 'variable')}: the policy of {own.party} "
            f"allows {most}; set max_parents = {max(most - 1, 0)}"
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
        approved = approval.approved()
        notes = " (ended)" * approved.is_over + f" ({WAITS})" * _waits(own, approval)
        sys.stdout.write(
            f"{grouped_digest(approval.contract.digest)}\n"
            f"    approved by {approved.words}{notes}; "
            f"{counted(len(approval.contract.variables), 'variable')}, "
            f"rule {rule.kind if rule else 'none'}, {counted(runs, 'run')}, "
            f"data {approval.version or 'of any version'}\n"
        )
    for path in approvals_in(own.approved, DECLINED):
        contract, by, day, because = read_declined(path)
        sys.stdout.write(
            f"{grouped_digest(contract.digest)}\n"
            f"    declined by {printable(by)} on {day}: {printable(because)}\n"
        )


def run_withdraw(site: Path, digest: str) -> None:
    """Withdraw an approval; a run stops at its next query."""
    path = withdraw(SiteFile.read(site).approved, digest)
    sys.stdout.write(f"Withdrawn: {path}\n")
