"""Clocks that differ: who is warned of what, while the session goes on."""

from __future__ import annotations

from time import time

from tests.protocols.network import Parties
from tests.protocols.small import data_of
from vertibayes.cli.check import _Watch
from vertibayes_protocols.deployment.checks import Findings
from vertibayes_protocols.deployment.run_status import KeptRun, RunStatus

WORDS = "the clock of b is 2 h 0 min ahead of this one: compare both with a time server"


def test_a_clock_two_hours_off_is_named_by_runs_and_checks():
    """Before: two hours off, nothing named the clock."""
    findings = Findings([[]])
    run = KeptRun(None, RunStatus("ana", "analyst", "0.2.0", "bayesian_network"), lambda _: None)
    with Parties(data_of(a="xy", b="z")) as parties:
        parties.mailboxes["b"].time_of_day = lambda: time() + 7200
        for watch in (run, _Watch(findings)):
            parties.session(watch).close()
        assert set(parties.errors("a", "b").values()) == {None}
    assert findings.lines == [("warning", WORDS)] and not findings.wrong
    assert WORDS in [note["text"] for note in run.status.notes]
