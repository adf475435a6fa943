"""How a party reaches the relay: the address, its certificates, whom TLS trusts, the proxy."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.tls import Certificates

URL = re.compile(r"wss://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[!-~]*)?")
NO_PROXY = "none"
PROXY = re.compile(r"https?://([^@:/\s]+:[^@:/\s]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{1,5}/?")


class Route(NamedTuple):
    """How a party reaches the relay."""

    address: str
    certificates: Certificates | None = None
    trust: str = "root"  # for the outer TLS: the study's root, or what the "system" trusts
    proxy: str | None = None  # http or https, with user and password; None: of the environment
    tls: bool = True  # at the relay, if it has certificates; a reverse proxy ends TLS if not

    @property
    def is_secure(self) -> bool:
        """Whether the connection has TLS."""
        return self.tls and self.certificates is not None

    @property
    def url(self) -> str:
        """The address as a URL."""
        if self.address.startswith("wss://"):
            return self.address
        return f"ws{'s' if self.is_secure else ''}://{self.address}/"

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The host and the port of the address."""
        return host_and_port(self.address)


def host_and_port(address: str) -> tuple[str, int]:
    """Return the host and the port of an address; raise a TransportError if it is not one."""
    if URL.fullmatch(address):
        url = urlsplit(address)
        return str(url.hostname), 443 if url.port is None else url.port
    host, _, port = address.rpartition(":")
    if not host or ":" in host or not port.isdecimal() or int(port) > 65535:
        expected = "host:port or wss://host[:port]/path is expected"
        raise TransportError(f"{address!r} is not an address: {expected}")
    return host, int(port)


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
