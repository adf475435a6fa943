"""Parties behind proxies, and a relay behind nginx, whose certificate is of another authority.

The proxies are those of the packages squid, tinyproxy and nginx-light, if they are installed.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.e2e.processes import Authority, free_address
from tests.protocols.relays import relaying
from vertibayes_protocols.deployment.downloading import bundle_at
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.relay_link import connect

pytestmark = pytest.mark.machines

SERVER = ExtendedKeyUsageOID.SERVER_AUTH
USER, PASSWORD = "alice", "s3cret"

SQUID = """
http_port {address}
auth_param basic program {helper} {folder}/passwords
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
pid_filename {folder}/pid
cache_log {folder}/cache.log
access_log none
cache deny all
shutdown_lifetime 0 seconds
"""

TINYPROXY = """
Port {port}
Listen {host}
BasicAuth alice s3cret
PidFile "{folder}/pid"
"""

NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{
        listen {address} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        location /study-1 {{
            proxy_pass http://{relay};
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection "upgrade";
            proxy_read_timeout 60s;
        }}
        location /stopped {{ proxy_pass http://127.0.0.1:1; }}
    }}
}}
"""


def need(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@contextmanager
def running(command, address):
    """Run a program until the block ends; wait until it listens."""
    host, port = address.split(":")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection((host, int(port)), 1.0).close()
                break
            except OSError:
                assert process.poll() is None, "it ended"
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def squid(folder):
    need("squid")
    helper, address = "/usr/lib/squid/basic_ncsa_auth", free_address()
    hashed = subprocess.run(
        ["openssl", "passwd", "-apr1", PASSWORD], check=True, capture_output=True, text=True
    ).stdout.strip()
    (folder / "passwords").write_text(f"{USER}:{hashed}\n")
    path = folder / "squid.conf"
    path.write_text(SQUID.format(address=address, folder=folder, helper=helper))
    for one in (folder, *folder.parents[:2], path, folder / "passwords"):
        one.chmod(0o777 if one.is_dir() else 0o644)  # it runs as a user of its own
    service = f"test{address.split(':')[1]}"  # its shared memory outlives a process that was killed
    with running(["squid", "-N", "-n", service, "-f", str(path)], address):
        yield address


@contextmanager
def tinyproxy(folder):
    need("tinyproxy")
    host, port = (address := free_address()).split(":")
    path = folder / "tinyproxy.conf"
    path.write_text(TINYPROXY.format(host=host, port=port, folder=folder))
    with running(["tinyproxy", "-d", "-c", str(path)], address):
        yield address


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("study"))


def reach_each_other(north, south, **how):
    """Let two parties send each other a packet of a megabyte; `how` they connect."""
    with connect("north", peers=["south"], certificates=north, **how) as one:
        with connect("south", peers=["north"], certificates=south, **how) as other:
            packet = bytes(range(256)) * 4096
            assert one.deliver({"south": packet}, 10.0) == {}
            assert other.receive(10.0) == ("north", packet)


@pytest.mark.parametrize("proxy", [squid, tinyproxy])
def test_parties_reach_each_other_through_a_proxy_of_https(study, tmp_path, proxy):
    north, south, shown = (study.certificates(name) for name in ("north", "south", "relay"))
    with relaying(shown) as (relay, log), proxy(tmp_path) as address:
        way = {"address": relay.address, "proxy": f"http://{USER}:{PASSWORD}@{address}"}
        reach_each_other(north, south, **way)
        way["proxy"] = f"http://{USER}:wr0ng@{address}"
        with pytest.raises(TransportError, match="its user or password is wrong") as caught:
            connect("north", peers=(), certificates=north, timeout=3.0, **way)
        assert "wr0ng" not in str(caught.value) and USER not in str(caught.value)
        assert {facts["peer"] for facts in log.of("connected")} == {"north", "south"}


def test_a_relay_behind_nginx_whose_certificate_is_of_another_authority(
    study, tmp_path, monkeypatch
):
    """The control is a party that trusts the study's root alone for the outer TLS."""
    need("nginx")
    north, south = (study.certificates(name) for name in ("north", "south"))
    public = Authority(tmp_path / "public", "a public authority")
    monkeypatch.setenv("SSL_CERT_FILE", str(public.root))
    name = "0123456789abcdef"
    hand_out = {f"/study-1/bundle/{name}": b"a bundle"}.get
    shown, address = public.certificates("web", "localhost", purpose=SERVER), free_address()
    with relaying(study.certificates("relay"), tls=False, hand_out=hand_out) as (relay, log):
        path = tmp_path / "nginx.conf"
        path.write_text(
            NGINX.format(
                folder=tmp_path, address=address, relay=relay.address,
                certificate=shown.certificate, key=shown.key,
            )
        )  # fmt: skip
        with running(["nginx", "-c", str(path), "-e", str(tmp_path / "error.log")], address):
            url = f"wss://localhost:{address.split(':')[1]}/study-1"
            reach_each_other(north, south, address=url, trust="system")
            assert {facts["peer"] for facts in log.of("connected")} == {"north", "south"}
            with pytest.raises(TransportError, match="unknown authority"):
                connect("north", url, (), certificates=north, timeout=3.0)
            web = url.removesuffix("/study-1")
            assert bundle_at(f"{url}/{name}") == b"a bundle"
            for place, reason in (
                (f"{web}/{name}", "no such bundle .404."),
                (f"{url}/0{name[1:-1]}0", "no such bundle .426."),
                (f"{web}/stopped/{name}", "is not the relay, or refuses .502."),
            ):
                with pytest.raises(ValueError, match=reason):
                    bundle_at(place)
            thief = Authority(tmp_path / "thief").certificates("north")._replace(root=north.root)
            with pytest.raises(TransportError, match=r"does not take .* .unknown authority"):
                connect("north", url, (), certificates=thief, trust="system", timeout=3.0)
