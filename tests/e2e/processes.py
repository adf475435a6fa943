"""Federations of processes on this machine: their keys, certificates, files, starts and ends."""

from __future__ import annotations

import datetime
import inspect
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.e2e.party import identity_of, save_data, signing_of, stop_file
from vertibayes_mpc.randomness import KeyPair, SystemRandomness
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import Session
from vertibayes_protocols.transports.mailbox import Mailbox, Patience, process_of
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.transports.tls import Certificates

ROOT = Path(__file__).parents[2]
LIMIT = 600.0  # seconds in which what a test waits for happens on any machine; no test measures it


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def until(condition):
    """Wait until a condition holds; return what it returns."""
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def _text(name):
    return name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value


class Authority:
    """Signs certificates, as a coordinator does."""

    def __init__(self, folder, name="root"):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.root = self._write("root", self._sign(self.name, self.key.public_key(), True))

    def certificates(self, party, common_name=None, **changed):
        """Sign a party's certificate: `days` it is valid for, `purpose` of it."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name or party)])
        certificate = self._write(party, self._sign(name, key.public_key(), False, **changed))
        path = self.folder / f"{party}.key"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return Certificates(self.root, certificate, path)

    def _sign(self, name, public, authority, days=1.0, purpose=None):
        now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
        builder = x509.CertificateBuilder(
            self.name, name, public, x509.random_serial_number(), now - day, now + days * day
        )
        if not authority:
            uses = {"relay": ExtendedKeyUsageOID.SERVER_AUTH}
            use = purpose or uses.get(_text(name), ExtendedKeyUsageOID.CLIENT_AUTH)
            builder = builder.add_extension(x509.ExtendedKeyUsage([use]), False)
        usage = dict.fromkeys(inspect.signature(x509.KeyUsage).parameters, False)
        usage.update({"key_cert_sign": True, "crl_sign": True} if authority else {})
        usage["digital_signature"] = True
        for extension, critical in (
            (x509.BasicConstraints(ca=authority, path_length=None), True),
            (x509.KeyUsage(**usage), True),
            (x509.SubjectKeyIdentifier.from_public_key(public), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False),
            (x509.SubjectAlternativeName([x509.DNSName(_text(name))]), False),
        ):
            builder = builder.add_extension(extension, critical)
        return builder.sign(self.key, hashes.SHA256())

    def _write(self, name, certificate):
        path = self.folder / f"{name}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path


class Process:
    """A party's process; its lines are read as they come."""

    def __init__(self, party, settings="", module="party", command=None, folder=ROOT):
        self.party = party
        self.lines = queue.Queue()
        self.seen = []
        command = command or [sys.executable, "-m", f"tests.e2e.{module}", party, str(settings)]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())

    def wait_for(self, start, part="", timeout=LIMIT):
        """Return the next line that starts so, and has a part."""
        end = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.party} said only {self.seen}") from None
            self.seen.append(line)
            if line.startswith(start) and part in line:
                return line

    def kill(self):
        self.process.kill()
        self.process.wait(10)
        self.reader.join(10)
        self.process.stdout.close()


class Processes:
    """A relay, sites and a dealer as processes; the analyst is the caller, or a process too.

    `stop` has parties and before which message each waits: its kind, how many go before, seconds.
    `around` wraps the relay's address for each party: it returns the one that it connects to.
    """

    def __init__(
        self, folder, data, *, secure=False, patience=None, stop=None, memory=False,
        analyst_apart=False, around=None, policy=None, analysts=(ANALYST,),
    ):  # fmt: skip
        self.folder, self.sites = folder, tuple(data)
        parties = (*data, DEALER, *analysts)
        keys = {p: KeyPair.generate(SystemRandomness()).private.hex() for p in parties}
        files = {site: str(folder / f"{site}.npz") for site in data}
        for site, path in files.items():
            save_data(path, data[site])
        self.address = free_address()
        self.patience = patience or {}
        self.settings = {
            "address": self.address, "keys": keys, "data": files, "folder": str(folder),
            "patience": self.patience, "policy": policy or {}, "analysts": analysts,
            "connect": 30 + 8 * len(data), "seconds": 300 + 20 * len(data),
        }  # fmt: skip
        for party, (kind, place, *seconds) in (stop or {}).items():
            self.stop_at(party, kind, place, *seconds)
        self.around, self.analyst_apart = around, analyst_apart
        if memory:
            self.settings["memory"] = str(folder)
        self.authority = Authority(folder / "certificates") if secure else None
        self.certificates = {}
        if self.authority is not None:
            self.certificates = {p: self.authority.certificates(p) for p in (*parties, "relay")}
            paths = {p: list(map(str, found)) for p, found in self.certificates.items()}
            self.settings["certificates"] = paths
        self.running, self.link = {}, None
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise

    def _start_all(self):
        self.start("relay")
        self.running["relay"].wait_for("ready")
        for party in (*self.sites, DEALER):
            self.start(party)
        if not self.analyst_apart:
            self._connect()
        for party in (*self.sites, DEALER):
            self.running[party].wait_for("ready")

    def _connect(self):
        address = self._address_of(ANALYST)
        self.link = connect(
            process_of(ANALYST, SystemRandomness()), address, self.settings["keys"],
            certificates=self.certificates.get(ANALYST),
        )  # fmt: skip
        known = identity_of(ANALYST, self.settings)
        self.mailbox = Mailbox(self.link, known, Patience(**self.patience))

    def start(self, party, module="party", name=None, **changes):
        """Start a party's process; an analyst has several, each of which is given a name here."""
        name = name or party
        path = self.folder / f"{name}.json"
        changes["address"] = self._address_of(party)
        path.write_text(json.dumps({**self.settings, **changes}))
        self.running[name] = Process(party, path, module)

    def _address_of(self, party):
        if self.around is None or party == "relay":
            return self.address
        return self.around(party, self.address)

    def stop_at(self, party, kind, place=0, seconds=60):
        """Have a party say "here" and wait before it sends the next message of a kind."""
        stop_file(self.settings, party).write_text(json.dumps([kind, place, seconds]))

    def session(self):
        transport = NetworkTransport(self.mailbox, (*self.sites, DEALER))
        role = AnalystRole(public_keys=self.mailbox.identity.peers)
        return Session(role, transport)

    def star(self, members, most_absent=0):
        """Begin a session with sites that need not know each other; return it and who is absent."""
        transport = NetworkTransport(self.mailbox, members, star=True, most_absent=most_absent)
        known = self.mailbox.identity
        role = AnalystRole(
            public_keys=dict(known.peers), signing_keys=signing_of(self.settings), keys=known.keys
        )
        return Session(role, transport), transport.absent

    def promised(self, site):
        """Return what a site's memory has committed: study -> column -> digest."""
        path = self.folder / site
        if not path.exists():
            return {}
        with np.load(path, allow_pickle=False) as file:
            return json.loads(file["notes"].tobytes())["committed"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.link is not None:
            self.link.close()
        for process in self.running.values():
            process.kill()
