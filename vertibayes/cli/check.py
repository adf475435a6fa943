"""``vertibayes check``: what can be said before a run, the versions and the relay's address too."""

from __future__ import annotations

import errno
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mpc.errors import ProtocolError
from protocols.deployment.checks import Findings, Outside, check_files
from protocols.deployment.files import StudyFile
from protocols.deployment.parts import RelayAddress
from protocols.deployment.running import study_session
from protocols.errors import QueryRefusedError, TransportError
from protocols.queries import Describe, Meet
from protocols.transports.mailbox import RELAY
from vertibayes import __version__

REACH_SECONDS = 3.0


def run_check(files: Sequence[Path], meet: bool) -> bool:
    """Print what is found; return whether anything is wrong.

    Raises
    ------
    ValueError
        If parties are to meet, and the first file is not a study's, or is at fault.
    """
    study = StudyFile.read(files[0]) if meet else None
    found = check_files(files, Outside(_reach_relay, _listen, _study))
    if study is not None and not found.wrong:
        found.begin()
        _meet(study, found)
    sys.stdout.write(f"{versions()}\n")
    for part in filter(None, found.parts):
        sys.stdout.write("\n" + "".join(f"{how:8}{text}\n" for how, text in part))
    count = Counter(how for how, _ in found.lines)
    doubts = f"{count['warning']} warning{'' if count['warning'] == 1 else 's'}"
    sys.stdout.write(f"\n{count['wrong'] or 'nothing'} wrong, {doubts}\n")
    return found.wrong


def reach(host: str, port: int) -> str | None:
    """Return None if somebody listens at an address, else why it cannot be reached.

    Raises
    ------
    ValueError
        If there is no such machine.
    """
    try:
        with socket.create_connection((host, port), REACH_SECONDS):
            return None
    except socket.gaierror as error:
        raise ValueError(f"is at no machine that is known here ({error.strerror})") from None
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"


def _reach_relay(relay: RelayAddress) -> str | None:
    """Say also if what listens is no relay with a certificate of this root."""
    doubt = reach(*relay.host_and_port)
    if doubt or relay.certificates is None:
        return doubt
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(relay.certificates.root)
        context.load_cert_chain(relay.certificates.certificate, relay.certificates.key)
    except OSError:
        return None  # what is wrong with them is said elsewhere
    context.check_hostname = False  # the name that counts is the relay's own
    try:
        plain = socket.create_connection(relay.host_and_port, REACH_SECONDS)
        with plain, context.wrap_socket(plain) as secure:
            shown = secure.getpeercert() or {}
    except TimeoutError:
        return "listens, and does not answer"
    except OSError as error:
        reason = getattr(error, "verify_message", "") or type(error).__name__
        raise ValueError(f"shows no certificate of a relay of this root ({reason})") from None
    if (("commonName", RELAY),) not in shown.get("subject", ()):
        raise ValueError("shows a certificate that is not in the name of relay")
    return None


def _listen(relay: RelayAddress) -> str | None:
    """Say whether an address can be listened on; taken, the relay itself may be who listens."""
    try:
        socket.create_server(relay.host_and_port).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise ValueError(f"cannot be listened on ({error.strerror})") from None
    else:
        return None
    return _reach_relay(relay) or "is listened on already: good, if by this relay"


def _study(file: StudyFile) -> None:
    from vertibayes.cli.study import check_settings

    check_settings(file)


def _meet(file: StudyFile, found: Findings) -> None:
    """Begin a session as a run does: all agree on keys and releases, the sites on their people."""
    from vertibayes.cli.study import tell_waiting

    told = found.say
    try:
        with study_session(file, waiting=tell_waiting) as session:
            session.ask(Meet.of(session.role, file.sites, file.dealer))
            told("ok", f"{file.dealer} and the sites have the keys and the release of this study")
            told("ok", "the sites hold the same people")
            for site, shown in session.ask(Describe(file.sites)).items():
                names = ", ".join(f"{v.name} ({len(v.states)})" for v in shown.named().values())
                told("ok", f"{site}: {shown.records} records; variables and their states: {names}")
    except (ValueError, ProtocolError, QueryRefusedError, TransportError) as error:
        told("wrong", str(error))


def versions() -> str:
    """Return the versions that parties should have in common."""
    told = [f"vertibayes {__version__}", f"Python {sys.version.split()[0]}"]
    told += [f"{name} {_version(name)}" for name in ("cryptography", "numpy", "nvflare")]
    return ", ".join(told)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not there"
