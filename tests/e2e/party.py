"""One party of a federation as a process: ``python -m tests.e2e.party relay|site|dealer ...``.

Its arguments are a file in JSON: what a configuration will say. Tests start it, and kill it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from vertibayes_mpc.randomness import KeyPair
from vertibayes_mpc.signing import SigningKey
from vertibayes_protocols.errors import TransportError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.parties import Watch
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import KINDS
from vertibayes_protocols.roles import DealerRole, SiteRole
from vertibayes_protocols.seal import Identity
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.transports.connection import Connection
from vertibayes_protocols.transports.mailbox import Mailbox, Patience
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.relay_link import connect
from vertibayes_protocols.transports.serving import answer
from vertibayes_protocols.transports.tls import Certificates
from vertibayes_protocols.variables import Variable


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def certificates_of(settings):
    paths = settings.get("certificates")
    return Certificates(*map(Path, paths)) if paths else None


def analysts_of(settings):
    return settings.get("analysts", [ANALYST])


def identity_of(party, settings):
    keys = {p: KeyPair(bytes.fromhex(key)) for p, key in settings["keys"].items()}
    return Identity(party, keys[party], {p: k.public for p, k in keys.items() if p != party})


def signing_of(settings):
    keys = {p: KeyPair(bytes.fromhex(key)) for p, key in settings["keys"].items()}
    return {party: SigningKey.of(pair).public for party, pair in keys.items()}


def data_of(path):
    with np.load(path, allow_pickle=False) as file:
        notes = json.loads(file["variables"].tobytes())
        variables = {n: Variable(n, tuple(states), missing) for n, states, missing in notes}
        ids = TextColumn.of(file["ids"]) if "ids" in file else None
        return SiteData(variables, {name: file[f"codes {name}"] for name in variables}, ids)


def save_data(path, data):
    notes = json.dumps([[v.name, v.states, v.missing] for v in data.variables.values()])
    codes = {f"codes {name}": column for name, column in data.codes.items()}
    if data.ids is not None:
        codes["ids"] = np.array(data.ids.texts)[data.ids.places]
    np.savez(path, variables=np.frombuffer(notes.encode(), np.uint8), **codes)


def role_of(party, identity, settings):
    peers = {p: key for p, key in identity.peers.items() if p not in analysts_of(settings)}
    if party == DEALER:
        return DealerRole(party, identity.keys, peers)
    role = SiteRole(
        party, data_of(settings["data"][party]), identity.keys, peers,
        policy=Policy(**{"free_tables": True, **settings.get("policy", {})}),
        signing_keys=signing_of(settings),
    )  # fmt: skip
    if "memory" in settings:
        role.memory = SiteMemory(Path(settings["memory"]) / party)
        role.ledger = LedgerFile(Path(settings["memory"]) / f"{party}.jsonl", role.memory)
    return role


def stop_file(settings, party):
    """Where to write before which message a party is to stop: kind, how many go before, seconds."""
    return Path(settings["folder"]) / f"{party}.stop"


def stop_where_told(party, settings):
    """Say when the message of the stop file is about to leave, and wait there: to be killed."""
    path = stop_file(settings, party)
    pack, seen = Connection._pack, []

    def watched(connection, receiver, body):
        if path.exists():
            kind, place, seconds = json.loads(path.read_text())
            if bytes(body[1 : 1 + body[0]]).decode() == kind:
                seen.append(receiver)
                if len(seen) == place + 1:
                    seen.clear()
                    path.unlink()
                    say("here")
                    time.sleep(seconds)
        return pack(connection, receiver, body)

    Connection._pack = watched


class Said(Watch):
    """Prints how a session has ended."""

    def ended(self, error):
        say(f"ended {getattr(error, 'party', error)} {error}")


def main(party, path):
    settings = json.loads(Path(path).read_text())
    certificates = certificates_of({"certificates": settings.get("certificates", {}).get(party)})
    if party == "relay":
        with start_relay(settings["address"], certificates=certificates):
            say("ready")
            time.sleep(settings.get("seconds", 120))
        return
    stop_where_told(party, settings)
    identity = identity_of(party, settings)
    patience = Patience(**settings.get("patience", {}))
    try:
        seconds = settings.get("connect", 30.0)
        link = connect(
            party, settings["address"], settings["keys"], certificates=certificates, timeout=seconds
        )
    except TransportError as error:
        say(f"failed {error}")
        sys.exit(2)
    with link:
        mailbox = Mailbox(link, identity, patience, note=lambda e: say(f"refused {e}"))
        role = role_of(party, identity, settings)
        say("ready")
        analysts = {name: identity.peers[name] for name in analysts_of(settings)}
        answer(mailbox, role, analysts, KINDS, watches=lambda *_: Said())


if __name__ == "__main__":
    main(*sys.argv[1:])
