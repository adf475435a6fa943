"""How a party reaches the relay: the address, its certificates, whom TLS trusts, the proxy."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple

from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.transports.tls import Certificates

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")  # a name or IPv4: no IPv6
PLAIN = re.compile(rf"(?P<host>{HOST.pattern}):(?P<port>[0-9]{{1,5}})")
URL = re.compile(rf"wss://(?P<host>{HOST.pattern})(:(?P<port>[0-9]{{1,5}}))?(/[!-~]*)?")
HTTPS = 443
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
    if (found := parsed(address)) is None:
        expected = "host:port or wss://host[:port]/path is expected"
        raise TransportError(f"{address!r} is not an address: {expected}")
    return found


def parsed(address: str) -> tuple[str, int] | None:
    """Return the host and the port of an address; None if it is not one."""
    found = URL.fullmatch(address) or PLAIN.fullmatch(address)
    if found is None or not 0 < (port := int(found["port"] or HTTPS)) < 65_536:
        return None
    return found["host"], port


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
