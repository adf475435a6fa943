"""Begin: a session runs an approved study, and every later query is the next one of that study.

    analyst -> sites    Begin: the digest of the contract, the id of the study
    site -> analyst     Begun: what the steps of this run have shown so far

A site refuses a digest that its owner has not approved, a contract whose parties or keys are not
those that the site pins, a run beyond the number of the contract, and one that needs more of a
budget than is left beside what other open runs still need
(`vertibayes_protocols.queries.opening.needs`). Runs that begin and release
nothing are limited too (`most_failed_runs`): a party that lies could learn from each of them
whether it failed. A run whose session broke is resumed if the id is that of the contract's last
run.

Security: the analyst's name and key are in the contract, and the transport proves the key.
Leakage: whether a contract is approved at a site, waits for a second person, or why its owner
declined it, to an analyst who knows the contract's digest; what is left of a budget that the run
would exceed, and whether other open runs need the rest; winners that the site's shares have already
revealed to this analyst.
Cost: 1 round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.rounds import Expect, Message, Party, Program, exchange, send
from vertibayes_protocols.approval import Approved, Phase, UnusableApprovalError
from vertibayes_protocols.contract import DIGEST_BYTES, Contract, grouped_digest
from vertibayes_protocols.effects import Effects, saying
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.approved_run import OVER, ApprovedRun
from vertibayes_protocols.queries.declared_run import DeclaredRun
from vertibayes_protocols.queries.opening.needs import Taken, needs_of
from vertibayes_protocols.query import At, Give, Query
from vertibayes_protocols.roles import AnalystRole, SiteRole
from vertibayes_protocols.storage.run_record import GIVEN, OPEN, RunRecord, Shown

MOST_SHOWN = 4_000_000  # winners, and whether they are decided, of one run


@dataclass(frozen=True, slots=True)
class Begun(Message):
    """The sender answers the queries of the study, and has shown this in the run so far."""

    kind: ClassVar[str] = "begun"
    # As of `Shown`, of each step.
    won: tuple[tuple[int, ...], ...] = ()
    decided: tuple[tuple[int, ...], ...] = ()
    state: int = OPEN  # whether the sender has kept or given its share of the release

    @property
    def shown(self) -> list[Shown]:
        """What the steps have shown."""
        pairs = zip(self.won, self.decided, strict=True)
        return [Shown(won, tuple(map(bool, decided))) for won, decided in pairs]


@dataclass(frozen=True, slots=True)
class Begin(Query[dict[Party, Begun], None]):
    """Ask the sites of a study to run it, or to resume its last run."""

    kind: ClassVar[str] = "begin"
    phase: ClassVar[Phase] = "begin"
    contract: bytes  # the digest of the contract
    # The id that `Commit` will have: that of the last run resumes it. Empty if the contract
    # declares its queries, or for a run that is not resumed.
    study: bytes = b""

    @classmethod
    def of(cls, contract: Contract, absent: Collection[Party] = (), *, study: bytes = b"") -> Begin:
        """Return the query that begins a run of a contract with all its sites but the absent."""
        present = tuple(site for site in contract.site_names if site not in absent)
        return cls(present, contract.digest, study)

    @property
    def claims(self) -> bytes:
        """The digest of the contract."""
        return self.contract

    def plan(self, at: At) -> None:
        """Plan nothing."""

    def effects(self, plan: None, at: At) -> Effects:
        """Return the effects: the analyst notes the run, a site what it knows of it."""
        what = f"a run of the study {grouped_digest(self.contract)}"
        is_analyst = at.party == at.analyst
        return saying(self.parties, [Fact(what, at.party, self.parties)] if is_analyst else [])

    def fits(self, site: SiteRole, plan: None) -> None:
        """Refuse a contract that is not approved, has other parties, or has no run left."""
        approved = _approved(site, self)
        contract = approved.contract
        sites = set(contract.site_names)
        all_are_needed = not contract.queries  # of sums, some sites may be absent
        if not sites >= set(self.parties) or (all_are_needed and len(self.parties) < len(sites)):
            raise ValueError("the query asks other parties than the study's sites")
        if wrong := _wrong_party(site, contract):
            raise ValueError(f"{wrong} of the approved contract is not the one that is pinned here")
        _check_floors(site, contract)
        record = _resumed(site, self)
        if record is None:
            _check_runs(site, contract)
        _check_budgets(site, approved, record)

    def run_site(self, site: SiteRole, plan: None, give: Give) -> Program[None]:
        """Begin or resume the run, and send what it has shown so far."""
        approved, record = _approved(site, self), _resumed(site, self)
        resumed = record is not None
        site.run = (
            DeclaredRun(site, approved)
            if approved.contract.queries
            else ApprovedRun(site, approved, study=self.study, resumed=resumed)
        )
        begun, used = site.memory.runs.count(self.contract)
        what = (
            f"run {begun + (not resumed)} of the study {grouped_digest(self.contract)}, "
            f"{'resumed, ' if resumed else ''}approved by {approved.words}; "
            f"{used} of {approved.contract.runs} runs used; data {_version(site, approved)}"
        )
        site.ledger.note(what, site.party, (site.analyst,))
        yield from send({site.analyst: _begun(record)})

    def run_analyst(self, analyst: AnalystRole, plan: None) -> Program[dict[Party, Begun]]:
        """Receive what each site has recorded."""
        expect = dict.fromkeys(self.parties, Expect(Begun, MOST_SHOWN))
        begun = yield from exchange({}, expect)
        for site, message in begun.items():
            if [*map(len, message.won)] != [*map(len, message.decided)]:
                raise MalformedMessageError(site, "its winners do not fit together")
        return dict(begun)


def _resumed(site: SiteRole, query: Begin) -> RunRecord | None:
    """Return the record of the run that a query resumes; None if it begins a run."""
    record = site.memory.run_of(query.contract, query.study)
    is_lost = record is not None and record.state == GIVEN and not record.label
    return None if is_lost else record


def _approved(site: SiteRole, query: Begin) -> Approved:
    """Return the approval of a digest, or refuse the query."""
    known = len(query.contract) == DIGEST_BYTES
    study = f"the study with the digest {grouped_digest(query.contract[:DIGEST_BYTES])}"
    try:
        approved = site.approvals(query.contract) if known else None
    except UnusableApprovalError as error:
        raise QueryRefusedError(site.party, f"{study} {error}") from None
    except ValueError as error:
        reason = "the approval of this study cannot be used here: its owner can approve it again"
        raise QueryRefusedError(site.party, reason, str(error)) from None
    if approved is None:
        reason = (
            f"{study} is not approved here: its owner can approve study.toml with `vertibayes "
            "approve`"
        )
        raise QueryRefusedError(site.party, reason)
    if approved.is_over:
        short = grouped_digest(query.contract)[:9]
        raise QueryRefusedError(
            site.party, f"approved study {short}: {OVER.format(approved.until)}"
        )
    return approved


def _version(site: SiteRole, approved: Approved) -> str:
    """Return the version of a site's data, and that of the approval if it is another."""
    version = site.everybody.version(approved.contract.variables)
    if approved.version in ("", version):
        return version
    return f"{version}, other than the version that was approved, {approved.version}"


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


def _check_floors(site: SiteRole, contract: Contract) -> None:
    """Refuse a contract beyond the site's policy, which may be stricter than when it was approved.

    What queries without a rule release is refused when they are asked.
    """
    for _, reason in site.policy.beyond(contract.rule, contract.runs):
        raise ValueError(reason)
    if (rule := contract.rule) is not None:
        memory = site.memory
        site.policy.check_alone(memory.spent, memory.left_plain, is_noisy=rule.is_noisy)


def _check_budgets(site: SiteRole, approved: Approved, record: RunRecord | None) -> None:
    """Refuse a run that needs more than is left of a budget: no site has shown anything yet."""
    data = site.everybody
    states = {name: len(variable.states) for name, variable in data.variables.items()}
    given = approved, site.policy, site.memory, states, data.records, record
    for need in needs_of(*given, reserved=_reserved(site, states, data.records)):
        if need.reason:
            raise ValueError(need.reason)


def _reserved(site: SiteRole, states: Mapping[str, int], records: int) -> Taken:
    """Return what the runs of other open sessions still take."""
    taken, sessions = Taken(), {id(r.session): r.session for r in site.shared.running.values()}
    for other in sessions.values():
        if (
            other is not site
            and isinstance(other, SiteRole)
            and isinstance(other.run, ApprovedRun | DeclaredRun)
        ):
            taken = taken.plus(other.run.takes(states, records))
    return taken


def _check_runs(site: SiteRole, contract: Contract) -> None:
    begun, used = site.memory.runs.count(contract.digest)
    if used >= contract.runs:
        runs = "its one run is" if contract.runs == 1 else f"its {contract.runs} runs are"
        reason = (
            f"{runs} used up: the study has released its tables; for another run, set more runs in "
            "[release] of study.toml, which makes it another study, to be approved"
        )
        raise QueryRefusedError(site.party, reason, f"the study {grouped_digest(contract.digest)}")
    if begun - used >= (most := site.policy.most_failed_runs):
        reason = (
            f"{most} runs of the study began and released nothing, which can be an attack: if you "
            "know why they failed, increase most_failed_runs in the policy"
        )
        raise QueryRefusedError(site.party, reason, f"the study {grouped_digest(contract.digest)}")


def _begun(record: RunRecord | None) -> Begun:
    if record is None:
        return Begun()
    won = tuple(shown.won for shown in record.shown)
    decided = tuple(tuple(map(int, shown.decided)) for shown in record.shown)
    return Begun(won, decided, record.state)
