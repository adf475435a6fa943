"""What a monitor is answered, and the log as JSON."""

from __future__ import annotations

import json
import logging
import re
import socket
import struct
from contextlib import closing
from datetime import datetime
from http.client import HTTPConnection

import pytest

from tests.e2e.command import run
from tests.e2e.processes import Authority, free_address
from tests.protocols.deployment.parties import change, deployment
from vertibayes.report.ledger.budgets import used_of_limits
from vertibayes_protocols.deployment import log
from vertibayes_protocols.deployment.files import RelayFile, SiteFile
from vertibayes_protocols.deployment.metrics import Metrics, metrics_served
from vertibayes_protocols.deployment.status import Status
from vertibayes_protocols.storage.memory import SiteMemory

WHO = 'party="north",role="site"'
SESSION = {"session": "ab12", "analyst": "carol"}


@pytest.fixture
def site(tmp_path):
    file = deployment(tmp_path / "all") / "north" / "site.toml"
    address = free_address()
    file.write_text(file.read_text() + f'\n[metrics]\naddress = "{address}"\n')
    return SiteFile.read(file)


def metrics_of(file):
    status = Status(file.party, file.kind, "0.2.0", started="2026-01-02T03:04:05+00:00")
    return Metrics(file, status, lambda: used_of_limits(file))


def asked(address, path="/metrics"):
    with closing(HTTPConnection(address, timeout=10)) as visitor:
        visitor.request("GET", path)
        answer = visitor.getresponse()
        return answer.status, answer.read().decode()


def samples(text):
    """Return the samples of a text in Prometheus' format, refusing what does not have its form."""
    form = re.compile(r'([a-z_]+\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z]+="[^"]*")*\}) (\S+)')
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    return {form.fullmatch(line)[1]: float(form.fullmatch(line)[2]) for line in lines}


def test_a_monitor_reads_what_a_site_does_and_has_left(site):
    metrics, status = metrics_of(site), None
    site.folder.mkdir()
    with metrics_served(metrics, site.metrics):
        tell = metrics.watch(lambda event, **facts: metrics._status.take(event, facts, ""))
        tell("connected", relay="h:1")
        tell("session begun", **SESSION)
        tell("answered", query="tables", study="0a0b", **SESSION)
        tell("refused", query="tables", reason="the column age has changed", **SESSION)
        metrics.moved.sent += 1234
        status, before = asked(site.metrics)
        with closing(SiteMemory(site.memory)) as memory:
            memory.scored = 7
            memory.commit(b"study", {})
            memory._keep(True)
        _, after = asked(site.metrics)
        assert asked(site.metrics, "/")[0] == 404
    shown = samples(before)
    assert status == 200 and shown[f'vertibayes_events_total{{{WHO},event="answered"}}'] == 1
    assert shown[f'vertibayes_events_total{{{WHO},event="refused"}}'] == 1
    assert shown[f"vertibayes_sessions{{{WHO}}}"] == shown[f"vertibayes_connected{{{WHO}}}"] == 1
    assert shown[f"vertibayes_sent_bytes_total{{{WHO}}}"] == 1234
    assert shown[f"vertibayes_started_seconds{{{WHO}}}"] == 1767323045
    left = f'vertibayes_limit_left{{{WHO},limit="most_scores"}}'
    used = f'vertibayes_limit_used{{{WHO},limit="most_scores"}}'
    assert shown[used] == 0 and samples(after)[used] == 7
    assert shown[left] == site.policy.most_scores and samples(after)[left] == 0
    assert samples(after)[f'vertibayes_file_bytes{{{WHO},file="memory"}}'] > 0
    for secret in ("carol", "tables", "0a0b", "age", "south", "ab12"):
        assert not re.search(rf"\b{secret}\b", before), secret


def test_a_visitor_who_hangs_up_or_stays_silent_ends_nothing_and_is_not_logged(site, capsys):
    host, _, port = site.metrics.rpartition(":")
    with metrics_served(metrics_of(site), site.metrics):
        with socket.create_connection((host, int(port))) as visitor:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            visitor.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert asked(site.metrics)[0] == 200
        silent = socket.create_connection((host, int(port)))
    silent.close()
    assert capsys.readouterr().err == ""


def test_the_end_of_a_certificate_is_a_time(tmp_path):
    paths = Authority(tmp_path).certificates("relay", days=9)._asdict().items()
    file = tmp_path / "relay.toml"
    table = "".join(f'{name} = "{path}"\n' for name, path in paths)
    file.write_text(f'[relay]\naddress = "127.0.0.1:8102"\n{table}[metrics]\n')
    own = RelayFile.read(file)
    shown = samples(metrics_of(own).text())
    end = shown['vertibayes_certificate_end_seconds{party="relay",role="relay"}']
    assert 8.9 < (end - datetime.now().timestamp()) / 86_400 < 9.1
    assert own.metrics == "127.0.0.1:9464"


def test_an_address_in_use_is_named_with_a_remedy(site, capsys):
    host, _, port = site.metrics.rpartition(":")
    with socket.create_server((host, int(port))):
        code, _, error = run(capsys, "site", site.source.path)
    assert code == 2 and f"cannot listen at {site.metrics}: Address already in use" in error
    change(site.source.path, f'address = "{site.metrics}"\n', 'address = "here"\n')
    with pytest.raises(ValueError, match=r"'here' is not an address: expected HOST:PORT"):
        SiteFile.read(site.source.path)


def test_each_line_of_a_log_as_json_is_an_object_with_the_facts(capsys, monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    log.start_log(as_json=True)
    log.teller("north")("refused", query="tables", reason='a "b"\nc', cells=3)
    logging.getLogger("other").warning("two\nlines")
    own, other = map(json.loads, capsys.readouterr().err.splitlines())
    assert datetime.fromisoformat(own.pop("time")).utcoffset().seconds == 0
    assert own == {
        "level": "info", "party": "north", "event": "refused", "query": "tables",
        "reason": 'a "b"\nc', "cells": 3,
    }  # fmt: skip
    assert other["logger"] == "other" and other["message"] == "two\nlines"
