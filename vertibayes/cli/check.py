"""``vertibayes check``: checks files, keys, data and the relay before a run; prints versions."""

from __future__ import annotations

import errno
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from vertibayes import __version__
from vertibayes.cli.contracts import check_addressed, contract_of, has_contract
from vertibayes.cli.study import check_settings, check_site, digest_of
from vertibayes.study_files import RunFile
from vertibayes_mpc.errors import ProtocolError
from vertibayes_protocols.contract import grouped_digest
from vertibayes_protocols.deployment.checks import Findings, Outside, check_files
from vertibayes_protocols.deployment.files import SiteFile, StudyFile
from vertibayes_protocols.deployment.running import study_session
from vertibayes_protocols.errors import QueryRefusedError, TransportError
from vertibayes_protocols.queries import Begin, Describe, Meet
from vertibayes_protocols.run_watch import RunWatch
from vertibayes_protocols.transports.line import NO_RELAY, advice, knock
from vertibayes_protocols.transports.route import Route

REACH_SECONDS = 5.0
PROGRAM = "no TLS", "closed", "timeout", NO_RELAY  # that is no relay


def run_check(files: Sequence[Path], meet: bool) -> bool:
    """Check files and print the findings; return whether anything is wrong."""
    study = StudyFile.read(files[0]) if meet else None
    findings = check_files(
        files, Outside(_reach_relay, _listen, check_settings, check_site, digest_of)
    )
    if study is not None and not findings.wrong:
        findings.begin()
        _meet(study, findings)
    sys.stdout.write(f"{versions()}\n")
    for part in filter(None, findings.parts):
        sys.stdout.write("\n" + "".join(f"{how:8}{text}\n" for how, text in part))
    count = Counter(how for how, _ in findings.lines)
    warnings = f"{count['warning']} warning{'' if count['warning'] == 1 else 's'}"
    sys.stdout.write(f"\n{count['wrong'] or 'nothing'} wrong, {warnings}\n")
    return findings.wrong


def run_digest(study: Path, *site: Path) -> None:
    """Print the digest of a study: with the analyst's key, or the one that a site pins."""
    if len(site) > 1:
        reason = f"--digest takes study.toml and at most one site.toml, got {1 + len(site)} files"
        raise ValueError(reason)
    file = StudyFile.read(study)
    if site:
        own = SiteFile.read(site[0])
        check_addressed(file, own)
        contract = contract_of(file, own.analysts[file.party])
    else:
        contract = contract_of(file)
    sys.stdout.write(f"{grouped_digest(contract.digest)}\n")


def reach(host: str, port: int) -> str | None:
    """Return None if a program listens at an address, otherwise why it cannot be reached."""
    try:
        with socket.create_connection((host, port), REACH_SECONDS):
            return None
    except socket.gaierror as error:
        raise ValueError(f"has an unknown host ({error.strerror})") from None
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"


def _reach_relay(relay: Route) -> str | None:
    """Check that the relay of this study listens; return a warning if nothing does."""
    kind, reason = knock(relay, REACH_SECONDS)
    if kind == "nothing":
        return f"cannot be reached: nothing listens there ({reason})"
    if kind == "proxy":
        return f"cannot be reached: {reason}"
    if kind == "refused":
        raise ValueError(f"listens, but does not take the certificate of this party ({reason})")
    if kind == "other":
        raise ValueError(
            f"is not what listens there: {_other(relay, reason)}{advice(relay, reason)}"
        )
    return None


def _other(relay: Route, reason: str) -> str:
    if relay.certificates is None or reason in PROGRAM:
        return f"another program does ({reason})"
    return f"another certificate is shown ({reason})"


def _listen(relay: Route) -> str | None:
    """Check that an address is free, or that a relay of this study listens there."""
    try:
        socket.create_server(relay.host_and_port).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise ValueError(f"cannot be used to listen ({error.strerror})") from None
    else:
        return None
    kind, reason = knock(relay, REACH_SECONDS)
    if kind == "other":
        raise ValueError(f"is in use by something else: {_other(relay, reason)}")
    return "is in use by a relay of this study: right if it is this relay"


class _Watch(RunWatch):
    """Adds what a session notices to the findings."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(sys.stderr.write)
        self._findings = findings

    def noticed(self, text: str) -> None:
        """Add a warning."""
        self._findings.say("warning", text)


def _meet(file: StudyFile, findings: Findings) -> None:
    """Begin a session as a run does: it compares keys and versions, and the sites' people."""
    say = findings.say
    try:
        with study_session(file, _Watch(findings), runs=False) as session:
            if has_contract(file):
                contract = contract_of(file)
                resumed = RunFile.unfinished(file.run, contract.digest)
                session.ask(Begin.of(contract, study=resumed))
                say("ok", "the sites have approved the study, and their budgets carry a run of it")
                if contract.queries and contract.queries[0]["kind"] != Meet.kind:
                    return  # over sites that hold other people
            if file.alignment is not None:
                say("ok", "the lists of people are not compared: a run aligns them")
                if has_contract(file):
                    return  # the next query is the alignment, of which sites allow few
            else:
                session.ask(Meet.of(session.role, file.sites, file.dealer))
                named = " and ".join(filter(None, (file.dealer, "the sites")))
                same = f"{named} have the keys and the version of this study"
                say("ok", same)
                say("ok", "the sites hold the same people")
            for site, shown in session.ask(Describe(file.sites)).items():
                names = ", ".join(f"{v.name} ({len(v.states)})" for v in shown.named().values())
                say("ok", f"{site}: {shown.records} records; variables and their states: {names}")
    except (ValueError, ProtocolError, QueryRefusedError, TransportError) as error:
        say("wrong", str(error))


def versions() -> str:
    """Return the versions, which should be the same for all parties."""
    texts = [f"vertibayes {__version__}", f"Python {sys.version.split()[0]}"]
    texts += [f"{name} {_version(name)}" for name in ("cryptography", "numpy", "websockets")]
    return ", ".join(texts)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not installed"
