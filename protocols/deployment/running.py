"""From a configuration file to a running party: the one module that touches the transport.

site, dealer    connect to the relay, serve the pinned analyst's sessions until stopped
analyst         connect, begin a session; learners ask through it
relay           pass on what it cannot read until stopped
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mpc.randomness import KeyPair
from mpc.rounds import Party
from protocols.deployment.data import read_data
from protocols.deployment.files import DealerFile, RelayFile, SiteFile, StudyFile
from protocols.deployment.keys import read_private
from protocols.deployment.log import Tell, told
from protocols.deployment.parts import RelayAddress, check_own_key
from protocols.queries import CONVERSATIONS
from protocols.roles import AnalystRole, DealerRole, SiteRole
from protocols.seal import Identity
from protocols.session import Role, Session
from protocols.site.ledger_file import LedgerFile
from protocols.site.memory import SiteMemory
from protocols.transports.mailbox import Mailbox
from protocols.transports.network import NetworkTransport, answer
from protocols.transports.nvflare import connect, start_relay

MEMORY, LEDGER = "memory", "ledger.jsonl"


# ---- roles ---------------------------------------------------------------------------------------


@contextmanager
def site_role(file: SiteFile) -> Iterator[SiteRole]:
    """Read a site's key, data, memory and ledger; hold memory and ledger while it lasts.

    Raises
    ------
    ValueError
        If one of them is at fault: it names the file.
    """
    keys = read_private(file.key)
    check_own_key(file.source, file.pinned, keys.public)
    data = read_data(file)
    public = {party: key for party, key in file.pinned.items() if party != file.analyst}
    file.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as held:
        memory = SiteMemory(file.folder / MEMORY)
        held.callback(memory.close)
        ledger = LedgerFile(file.folder / LEDGER)
        held.callback(ledger.close)
        names = file.party, data, keys, public, file.dealer, file.analyst, file.policy, memory
        yield SiteRole(*names, ledger=ledger)


def dealer_role(file: DealerFile) -> DealerRole:
    """Read the dealer's key; as `site_role`."""
    keys = read_private(file.key)
    check_own_key(file.source, file.pinned, keys.public)
    public = {party: key for party, key in file.pinned.items() if party != file.analyst}
    return DealerRole(file.party, keys, public, file.policy)


def analyst_role(file: StudyFile) -> tuple[AnalystRole, KeyPair]:
    """Read the analyst's key; as `site_role`."""
    keys = read_private(file.key)
    check_own_key(file.source, file.pinned, keys.public)
    return AnalystRole(file.party, public_keys=file.pinned), keys


# ---- parties -------------------------------------------------------------------------------------


def run_site(file: SiteFile, tell: Tell) -> None:
    """Serve the analyst's sessions until stopped."""
    with site_role(file) as role:
        tell("ready", records=role.data.records, variables=tuple(role.shown))
        _serve(role, role.keys, file.pinned, file.analyst, file.relay, tell)


def run_dealer(file: DealerFile, tell: Tell) -> None:
    """Deal for the analyst's sessions until stopped."""
    role = dealer_role(file)
    tell("ready", sites=tuple(role.public_keys))
    _serve(role, role.keys, file.pinned, file.analyst, file.relay, tell)


def _serve(
    role: Role,
    keys: KeyPair,
    pinned: Mapping[Party, bytes],
    analyst: Party,
    relay: RelayAddress,
    tell: Tell,
) -> None:
    def ended(error: Exception | None) -> None:
        tell("session ended", reason="" if error is None else _reason(error))

    with _mailbox(role.party, keys, pinned, relay, tell) as mailbox:
        tell("connected", relay=relay.address)
        answer(mailbox, role, analyst, told(CONVERSATIONS, tell), ended=ended)


def _reason(error: Exception) -> str:
    """Return an error's text if it is one that any party may read, else its class."""
    named = type(error).__module__.split(".")[0] in ("mpc", "protocols")
    return str(error) if named else type(error).__name__


@contextmanager
def study_session(file: StudyFile) -> Iterator[Session]:
    """Connect as the analyst, and begin a session with the study's parties."""
    role, keys = analyst_role(file)
    with _mailbox(file.party, keys, file.pinned, file.relay) as mailbox:
        transport = NetworkTransport(mailbox, (*file.sites, file.dealer))
        with Session(role, transport, CONVERSATIONS) as session:
            yield session


def run_relay(file: RelayFile, tell: Tell, wait: Callable[[], None]) -> None:
    """Pass packets on until `wait` returns."""
    relay = file.relay
    with start_relay(relay.address, certificates=relay.certificates) as started:
        tell("listening", address=started.address)
        wait()


@contextmanager
def _mailbox(
    party: Party,
    keys: KeyPair,
    pinned: Mapping[Party, bytes],
    relay: RelayAddress,
    tell: Tell | None = None,
) -> Iterator[Mailbox]:
    """Connect to the relay; tell which packets were refused."""

    def note(error: Exception) -> None:
        if tell is not None:
            tell("packet refused", reason=_reason(error))

    link = connect(party, relay.address, certificates=relay.certificates)
    try:
        yield Mailbox(link, Identity(party, keys, pinned), note=note)
    finally:
        link.close()


def ledger_path(file: SiteFile) -> Path:
    """Return where a site's ledger is."""
    return file.folder / LEDGER
