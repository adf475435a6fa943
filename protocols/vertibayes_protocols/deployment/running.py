"""From a configuration file to a running party: the one module that connects.

site, dealer    connect to the relay, serve the pinned analysts' sessions until stopped
analyst         connect, begin a session; learners ask through it
relay           pass on what it cannot read until stopped
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeAlias

from vertibayes_mpc.randomness import KeyPair, SystemRandomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import AlignmentLimits
from vertibayes_protocols.calibration.agreed import ClassifierSpec
from vertibayes_protocols.calibration.factors import Floats
from vertibayes_protocols.deployment.approvals import ApprovalFolder, Learner
from vertibayes_protocols.deployment.certificates import check_certificate
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.fetching import handed_out
from vertibayes_protocols.deployment.files import (
    DealerFile,
    PartyFile,
    RelayFile,
    SiteFile,
    StudyFile,
    own_keys,
)
from vertibayes_protocols.deployment.log import SessionLog, expiry_logged
from vertibayes_protocols.deployment.roster.identity import RosterIdentity
from vertibayes_protocols.errors import words
from vertibayes_protocols.events import CONNECTED, Tell
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.run_watch import UNWATCHED, RunWatch
from vertibayes_protocols.session import Session
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.whole_file import lock_study, open_own
from vertibayes_protocols.transports.carried import carried_link
from vertibayes_protocols.transports.counted import CountedLink, Moved
from vertibayes_protocols.transports.mailbox import LatePacketsError, Mailbox, process_of
from vertibayes_protocols.transports.network import NetworkTransport, session_of_those_there
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.relay_link import WebSocketLink, connect
from vertibayes_protocols.transports.serving import answer
from vertibayes_protocols.transports.tls import Certificates

Keep: TypeAlias = Callable[[Path, ClassifierSpec, Floats], None]
BeginSession: TypeAlias = Callable[[], Session]

LOCK = "run.lock"  # in the folder of a study that is run

# ---- roles ---------------------------------------------------------------------------------------


@contextmanager
def site_role(file: SiteFile, learner: Learner | None = None) -> Iterator[SiteRole]:
    """Read a site's key, data, memory and ledger, which stay open until the block ends."""
    keys, data = own_keys(file), read_data(file)
    file.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as held:
        memory = SiteMemory(file.memory)
        held.callback(memory.close)
        ledger = LedgerFile(file.ledger, memory)
        held.callback(ledger.close)
        role = role_of(file, keys, data, memory=memory, ledger=ledger)
        if learner is not None:
            role.approvals = ApprovalFolder(file.approved, learner, file.party, file.second)
        yield role


def role_of(file: SiteFile, keys: KeyPair, data: SiteData, **kept: Any) -> SiteRole:
    """Return a site's role; without `memory` and `ledger`, that of a site that keeps nothing."""
    return SiteRole(
        party=file.party,
        data=data,
        keys=keys,
        public_keys=_all_but_the_analysts(file),
        dealer=file.dealer,
        analyst=file.analyst,
        policy=file.policy,
        analyst_key=file.pinned[file.analyst],
        signing_keys=file.signing,
        former_keys=_former_keys(file),
        limits=AlignmentLimits() if file.matching is None else file.matching.limits,
        **kept,
    )


def _former_keys(file: SiteFile) -> dict[str, tuple[bytes, ...]]:
    """Return by which earlier keys the pinned ones were signed, as the roster says."""
    return {} if file.roster is None else {p: file.roster.former_keys(p) for p in file.pinned}


def dealer_role(file: DealerFile) -> DealerRole:
    """Read the dealer's key; as `site_role`."""
    keys = _all_but_the_analysts(file)
    return DealerRole(file.party, own_keys(file), keys, file.policy, analyst=file.analyst)


def _all_but_the_analysts(file: SiteFile | DealerFile) -> dict[str, bytes]:
    """Return the keys of the parties with which masks are agreed: all except analysts."""
    return {party: key for party, key in file.pinned.items() if party not in file.analysts}


# ---- parties -------------------------------------------------------------------------------------


def run_site(
    file: SiteFile,
    tell: Tell,
    keep: Keep | None = None,
    learner: Learner | None = None,
    moved: Moved | None = None,
) -> None:
    """Serve the analysts' sessions until stopped."""

    def calibrated(number: int, spec: ClassifierSpec, statistics: Floats) -> None:
        assert keep is not None  # set with it
        folder = file.folder / f"calibration-{number}"
        try:
            keep(folder, spec, statistics)
        except (OSError, ValueError) as error:  # the session does not end with it
            tell("classifier not written", folder=str(folder), reason=_reason(error))
        else:
            tell("classifier written", folder=str(folder))

    with site_role(file, learner) as role:
        role.remark = lambda what: tell("remark", what=what)
        role.processes = os.cpu_count() or 1
        role.calibrated = None if keep is None else calibrated
        if isinstance(role.ledger, LedgerFile):
            for what, facts in role.ledger.recovered():
                tell(what, **facts)
        report = role.data.report
        for name, finding in report.left_out.items():
            tell("variable left out", name=name, reason=finding.kind)
        for name, finding in report.warnings:
            tell("variable to check", name=name, reason=finding.kind)
        tell("ready", records=role.data.records, variables=(*role.shown, *role.data.numerics))
        _serve(file, role, tell, moved)


def run_dealer(file: DealerFile, tell: Tell, moved: Moved | None = None) -> None:
    """Deal for the analysts' sessions until stopped."""
    role = dealer_role(file)
    tell("ready", sites=tuple(role.public_keys))
    _serve(file, role, tell, moved)


def _serve(
    file: SiteFile | DealerFile,
    role: SiteRole | DealerRole,
    tell: Tell,
    moved: Moved | None,
) -> None:
    def watch(own: SiteRole | DealerRole, session: bytes) -> SessionLog:
        return SessionLog(tell, own, session, _reason)

    def refused(error: Exception) -> None:
        is_late = isinstance(error, LatePacketsError)
        tell("late packets" if is_late else "packet refused", reason=_reason(error))

    with expiry_logged(file, tell), _mailbox(file, role.keys, tell, refused, moved) as mailbox:
        tell(CONNECTED, **({} if file.relay is None else {"relay": file.relay.address}))
        answer(mailbox, role, file.analysts, KINDS, watches=watch)


def _reason(error: Exception) -> str:
    """Return the reason for this party's log: an error's text only if it cannot have a value."""
    kind = type(error)
    if kind.__module__.split(".")[0] in ("vertibayes_mpc", "vertibayes_protocols"):
        return str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        return words(error)
    at = extract_tb(error.__traceback__)[-1:]
    return " ".join([kind.__name__, *(f"at {Path(f.filename).name}:{f.lineno}" for f in at)])


@contextmanager
def study_session(
    file: StudyFile, watch: RunWatch = UNWATCHED, *, runs: bool = True
) -> Iterator[Session]:
    """Connect as the analyst, and begin a session; the parameters are those of `study_sessions`."""
    with study_sessions(file, watch, runs=runs) as begin, begin() as session:
        yield session


@contextmanager
def study_sessions(
    file: StudyFile, watch: RunWatch = UNWATCHED, *, runs: bool = True
) -> Iterator[BeginSession]:
    """Connect as the analyst."""
    with _analyst(file, watch, runs=runs) as (mailbox, role):

        def begin() -> Session:
            role.joined = None
            transport = NetworkTransport(mailbox, file.parties, watch)
            return Session(role, transport, watch)

        yield begin


@contextmanager
def star_session(
    file: StudyFile, most_absent: int, watch: RunWatch = UNWATCHED
) -> Iterator[tuple[Session, frozenset[Party]]]:
    """Connect as the analyst, and begin a session with sites that need not know each other."""
    with _analyst(file, watch) as (mailbox, role):
        transport = NetworkTransport(mailbox, file.sites, watch, star=True, most_absent=most_absent)
        with Session(role, transport, watch) as session:
            yield session, transport.absent


@contextmanager
def record_sessions(
    file: StudyFile, watch: RunWatch = UNWATCHED
) -> Iterator[Callable[[], AbstractContextManager[tuple[Session, frozenset[Party]]]]]:
    """Connect as the analyst to sites that speak with each other, without their dealer."""
    with _analyst(file, watch) as (mailbox, role):
        patience: list[float | None] = [mailbox.patience.hello]

        @contextmanager
        def open_session() -> Iterator[tuple[Session, frozenset[Party]]]:
            hello = patience.pop() if patience else None
            transport, absent = session_of_those_there(mailbox, file.sites, watch, hello=hello)
            with Session(role, transport, watch) as session:
                yield session, absent

        yield open_session


@contextmanager
def _analyst(
    file: StudyFile, watch: RunWatch, *, runs: bool = True
) -> Iterator[tuple[Mailbox, AnalystRole]]:
    with _locked(file) if runs else nullcontext():
        keys = own_keys(file)
        role = AnalystRole(
            file.party, public_keys=dict(file.pinned), signing_keys=dict(file.signing), keys=keys
        )
        with _mailbox(file, keys, watch.told) as mailbox:
            yield mailbox, role


@contextmanager
def _locked(file: StudyFile) -> Iterator[None]:
    """Lock the study's folder: a second run would disturb the first, whatever they learn."""
    file.folder.mkdir(parents=True, exist_ok=True)
    lock_file = open_own(file.folder / LOCK)
    try:
        lock_study(lock_file, file.folder)
        yield
    finally:
        os.close(lock_file)


def run_relay(file: RelayFile, tell: Tell, wait: Callable[[], None]) -> None:
    """Run the relay, which passes packets on, until `wait` returns."""
    address, shown = file.relay.address, {"certificates": _certificates(file)}
    relay = start_relay(
        address,
        **shown,
        revoked=file.revoked,
        tell=tell,
        tls=file.relay.tls,
        hand_out=partial(handed_out, file.source.path.parent),
    )
    with relay, expiry_logged(file, tell):
        tell("listening", address=address)
        wait()


@contextmanager
def _mailbox(
    file: PartyFile,
    keys: KeyPair,
    tell: Tell,
    note: Callable[[Exception], None] | None = None,
    moved: Moved | None = None,
) -> Iterator[Mailbox]:
    """Connect to the network; `note` gets the error of each packet that is refused."""
    with carried_link() or _relay_link(file, tell) as link:
        identity = RosterIdentity(file.party, keys, file.pinned, roster=file.roster)
        counted = CountedLink(link, moved or Moved())
        yield Mailbox(counted, identity, file.waits, note=note)


def _relay_link(file: PartyFile, tell: Tell) -> WebSocketLink:
    if file.relay is None:
        raise ValueError(
            f"{file.source.path}: [relay] is missing: only a job of NVIDIA FLARE starts a party "
            "without a relay"
        )
    route = file.relay._replace(certificates=_certificates(file))
    is_analyst = isinstance(file, StudyFile)
    name = process_of(file.party, SystemRandomness()) if is_analyst else file.party
    return connect(name, peers=file.pinned, tell=tell, **route._asdict())


def _certificates(file: PartyFile | RelayFile) -> Certificates | None:
    """Return a party's certificates if they are valid; with others, its peer would only hang up."""
    certificates = file.certificates
    if certificates is not None:
        check_certificate(*certificates, file.party, datetime.now(UTC))
    return certificates
