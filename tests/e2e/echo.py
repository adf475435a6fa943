"""A relay, or a party that sends back what it is sent: ``python -m tests.e2e.echo party file``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.e2e.party import certificates_of, say
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.relay_link import connect


def main(party, path):
    settings = json.loads(Path(path).read_text())
    certificates = certificates_of(settings)
    if party == "relay":
        with start_relay(settings["address"], certificates=certificates):
            say("ready")
            time.sleep(120)
    with connect(party, settings["address"], "ae", certificates=certificates) as link:
        say("ready")
        while True:
            sender, packet = link.receive(None)
            say(f"from {sender} {len(packet)} bytes")
            link.deliver({sender: packet}, 10.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
