"""A study whose parties run from their files, all in one process."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager

from tests.e2e.command import run
from tests.protocols.deployment.parties import SITES
from vertibayes.contract import steps_of_contract
from vertibayes_protocols.deployment.files import DealerFile, SiteFile
from vertibayes_protocols.deployment.log import SessionLog, teller
from vertibayes_protocols.deployment.running import dealer_role, site_role
from vertibayes_protocols.parties import serve
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.run_watch import UNWATCHED
from vertibayes_protocols.session import Session
from vertibayes_protocols.transports.local import LocalTransport


def run_in_one_process(monkeypatch, folder):
    """Have the analyst's session run all parties from their files, each with its log."""

    @contextmanager
    def sessions(file, watch=UNWATCHED, **_):
        role = AnalystRole(file.party, public_keys=file.pinned)
        programs = {}
        with ExitStack() as held:
            dealer = folder / "dealer" / "dealer.toml"  # missing where a study needs none
            roles = {"dealer": dealer_role(DealerFile.read(dealer))} if dealer.exists() else {}
            for site in SITES:
                found = SiteFile.read(folder / site / "site.toml")
                roles[site] = held.enter_context(site_role(found, steps_of_contract))

            def begin():
                for program in programs.values():
                    program.close()
                for party, own in roles.items():
                    mine = own.for_session(file.party, own.analyst_key if party in SITES else b"")
                    log = SessionLog(teller(party), mine, bytes(16))
                    programs[party] = serve(mine, file.party, KINDS, log)
                transport = LocalTransport(file.party, dict(programs))
                return Session(role, transport, watch)

            yield begin

    @contextmanager
    def session(file, watch=UNWATCHED, **_):
        with sessions(file, watch) as begin, begin() as found:
            yield found

    monkeypatch.setattr("vertibayes.cli.check.study_session", session)
    for module in ("vertibayes.cli.machines", "vertibayes.study"):
        monkeypatch.setattr(f"{module}.study_sessions", sessions)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))  # as they were, after the test


def learn_study(capsys, folder, out, *options):
    """Run `vertibayes learn study.toml`; return its exit status, output and errors."""
    return run(capsys, "learn", folder / "analyst" / "study.toml", "--out", out, *options)


def refused(capsys, folder, out, reason):
    code, output, error = learn_study(capsys, folder, out, "--quiet")
    assert code == 2 and not output and not out.exists()
    assert reason in error, error
