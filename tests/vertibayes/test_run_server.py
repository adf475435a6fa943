"""The page of a run is served to whoever has its token, and to nobody else."""

import json
import re
import socket
import sys
from contextlib import ExitStack
from threading import Thread
from time import monotonic

import pytest

from tests.vertibayes.test_run_view import AT, a_run
from vertibayes.report.live import server as module
from vertibayes.report.live.server import HEADERS, MOST_CLIENTS, serving
from vertibayes.report.live.view import view_of


@pytest.fixture
def status():
    return a_run()


@pytest.fixture
def server(status):
    with serving(lambda: view_of(status, runs=not status.ended, now=AT)) as found:
        yield found


def ask(server, path, *, method="GET", hosts=None, more=""):
    """Send a request as it stands; return the status, the headers and the body."""
    hosts = [f"127.0.0.1:{server.server_port}"] if hosts is None else hosts
    lines = [f"{method} {path} HTTP/1.1", *(f"Host: {host}" for host in hosts)]
    with connection(server) as client:
        client.sendall(("\r\n".join(lines) + f"\r\n{more}\r\n").encode("latin-1"))
        received = read(client)
    head, _, body = received.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in rest), body.decode()


def connection(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=20)


def read(client):
    received = b""
    while part := client.recv(1 << 16):
        received += part
    return received


def test_the_page_and_its_view_are_served_at_the_token(server):
    code, headers, page = ask(server, f"/{server.token}/")
    assert code == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert "The run is in progress. Now: learn the structure." in page
    code, headers, text = ask(server, f"/{server.token}/view.json")
    assert code == 200 and json.loads(text)["phases"][1]["state"] == "now"
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert server.url == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    assert server.server_address[0] == "127.0.0.1" and len(server.token) == 43


def test_answers_have_a_secret_that_no_request_of_the_page_has(server):
    """Who listens at the port when the server has ended reads requests, and has no answer."""
    page = ask(server, f"/{server.token}/")[2]
    answer = json.loads(ask(server, f"/{server.token}/view.json")[2])
    assert f'<html lang="en" data-proof="{server.proof}">' in page
    assert answer["proof"] == server.proof and len(server.proof) == 43
    assert server.proof not in server.url and server.token not in server.proof
    assert ask(server, f"/{server.proof}/view.json")[0] == 404


def test_the_policy_allows_the_pages_own_style_and_script_alone(server):
    _, headers, page = ask(server, f"/{server.token}/")
    policy = headers["Content-Security-Policy"]
    nonce = re.search(r"script-src 'nonce-([\w-]{22})'", policy)[1]
    assert re.findall(r"<(?:script|style)[^>]*>", page) == [
        f'<style nonce="{nonce}">',
        f'<script nonce="{nonce}">',
    ]
    assert "unsafe" not in policy and policy.startswith("default-src 'none'; connect-src 'self'")
    assert not re.search(r"https?://|\son\w+=|\sstyle=", page)
    assert nonce not in ask(server, f"/{server.token}/")[1]["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/view.json",
        "//",
        "/{wrong}/",
        "/{wrong}/view.json",
        "/{token}",
        "/{token}/../view.json",
        "/{token}/../../../../etc/passwd",
        "/{token}/%2e%2e/%2e%2e/etc/passwd",
        "/{token}/study.status.json",
        "/{token}//view.json",
        "/{token}/view.json?x=1",
        "/{prefix}/view.json",
        "/{token}x/view.json",
        "/\xe9/view.json",
        "http://127.0.0.1/{token}/",
        "*",
    ],
)
def test_other_paths_are_not_found(server, path):
    token = server.token
    wrong = token[:-1] + ("A" if token[-1] != "A" else "B")
    given = path.format(token=token, wrong=wrong, prefix=token[:-1])
    code, headers, body = ask(server, given)
    assert (code, body) == (404, "Not Found\n")
    assert HEADERS.items() <= headers.items()


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example"],
        ["evil.example:80"],
        ["127.0.0.1.evil.example"],
        ["localhost.evil.example"],
        ["127.0.0.1:80:80"],
        ["127.0.0.1@evil.example"],
        ["[::1]"],
        ["0.0.0.0"],
        [""],
        ["127.0.0.1", "evil.example"],
        ["127.0.0.1", "127.0.0.1"],
    ],
)
def test_a_request_for_another_host_is_refused_with_the_token_too(server, hosts):
    """A page of evil.example, which resolves to 127.0.0.1, sends its own name."""
    code, _, body = ask(server, f"/{server.token}/view.json", hosts=hosts)
    assert code == 421 and server.token not in body and "phases" not in body


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8080", "127.0.0.1:8080"])
def test_a_tunnel_to_the_page_may_have_another_port(server, host):
    assert ask(server, f"/{server.token}/view.json", hosts=[host])[0] == 200


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "X"]
)
def test_other_methods_are_refused(server, method):
    code, headers, body = ask(server, f"/{server.token}/view.json", method=method)
    assert (code, body, headers["Allow"]) == (405, "Method Not Allowed\n", "GET, HEAD")


def test_head_has_the_headers_alone_and_every_answer_has_those_that_protect_it(server):
    code, headers, body = ask(server, f"/{server.token}/", method="HEAD")
    assert (code, body) == (200, "") and int(headers["Content-Length"]) > 1000
    for path in (f"/{server.token}/", f"/{server.token}/view.json", "/", f"/{'x' * 70_000}"):
        headers = ask(server, path)[1]
        assert not any(name.lower().startswith("access-control") for name in headers)
        expected = {**HEADERS, "Content-Security-Policy": headers["Content-Security-Policy"]}
        assert expected.items() <= headers.items() and "Server" not in headers


def test_what_is_too_long_or_no_request_is_refused(server):
    assert ask(server, f"/{'x' * 70_000}")[0] == 414
    assert (
        ask(server, f"/{server.token}/", more="".join(f"A{n}: b\r\n" for n in range(200)))[0] == 431
    )
    assert ask(server, f"/{server.token}/", more=f"A: {'b' * 70_000}\r\n")[0] == 431
    with connection(server) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert b"Bad Request" in read(client)
    assert ask(server, f"/{server.token}/view.json")[0] == 200


def test_nothing_is_logged(server, capfd):
    for path in (f"/{server.token}/", "/wrong/", f"/{'x' * 70_000}"):
        ask(server, path)
    with connection(server) as client:
        client.sendall(b"GET / HTTP")  # and hangs up
    ask(server, "/", method="POST")
    assert capfd.readouterr() == ("", "")


def test_clients_that_send_nothing_block_nobody_and_are_given_up(server, monkeypatch):
    monkeypatch.setattr(module._Handler, "timeout", 0.5)
    with ExitStack() as held:
        silent = [held.enter_context(connection(server)) for _ in range(5)]
        silent[1].sendall(b"GET /")
        began = monotonic()
        assert ask(server, f"/{server.token}/view.json")[0] == 200
        assert monotonic() - began < 2
        assert [read(client) for client in silent] == [b""] * 5


def test_the_oldest_of_too_many_clients_is_closed(server):
    with ExitStack() as held:
        silent = [held.enter_context(connection(server)) for _ in range(3 * MOST_CLIENTS)]
        assert ask(server, f"/{server.token}/view.json")[0] == 200
        assert len(server._clients) <= MOST_CLIENTS
        assert read(silent[0]) == b""


def test_many_clients_at_once_are_answered(server):
    codes = []

    def client():
        codes.extend(ask(server, f"/{server.token}/view.json")[0] for _ in range(5))

    threads = [Thread(target=client) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 60


def test_hostile_texts_are_text_on_the_page(server, status):
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028\"'"
    status.parties = {hostile: {**status.parties["north"], "reason": hostile}}
    status.waits, status.stage, status.phase, status.plan = [hostile], hostile, hostile, [hostile]
    status.notes = [{"at": hostile, "text": hostile}]
    _, _, page = ask(server, f"/{server.token}/")
    assert page.count("<script") == 1 and "<img" not in page and "&lt;img src=x" in page
    assert json.loads(ask(server, f"/{server.token}/view.json")[2])["parties"]


def test_the_end_is_known_to_have_been_shown_once_a_client_has_read_it(server, status):
    ask(server, f"/{server.token}/view.json")
    status.ended, status.result = "written", "out"
    ask(server, f"/{server.token}/")
    ask(server, f"/{server.token}/view.json", method="HEAD")
    assert not server.shown_end.is_set()
    ask(server, f"/{server.token}/view.json")
    assert server.shown_end.is_set()


def test_two_servers_have_other_tokens_and_ports(server):
    with serving(server.view) as other:
        assert other.token != server.token and other.server_port != server.server_port
        assert ask(other, f"/{server.token}/view.json")[0] == 404


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
def test_the_page_is_at_no_other_address_of_the_machine(server):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.server_port), timeout=2)
    assert ask(server, f"/{server.token}/")[0] == 200
