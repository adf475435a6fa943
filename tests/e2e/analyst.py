"""An analyst as a process: ``python -m tests.e2e.analyst NAME settings``; as a study's command.

It keeps the tables that were opened in a file, learns a network, and writes it beside; both in the
folder `out` of the settings.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from tests.e2e.party import analysts_of, certificates_of, identity_of, say, stop_where_told
from vertibayes.counting.secure import SecureCounter
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.structure.learners import k2
from vertibayes.study_files import TableFile
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.roles import AnalystRole
from vertibayes_protocols.session import Session
from vertibayes_protocols.transports.mailbox import Mailbox, Patience, process_of
from vertibayes_protocols.transports.network import NetworkTransport
from vertibayes_protocols.transports.relay_link import connect


def learned(counter):
    """Return a network's edges and CPTs, to the last bit."""
    structure = k2(counter)
    fitted = fit_cpts(counter, structure)
    return {"edges": np.array(structure.edges), **{n: fitted.cpts[n] for n in structure.nodes}}


def main(party, path):
    settings = json.loads(Path(path).read_text())
    stop_where_told(party, settings)
    identity, sites = identity_of(party, settings), tuple(settings["data"])
    folder = Path(settings.get("out", settings["folder"]))
    patience = Patience(**settings.get("patience", {}))
    name = process_of(party, SystemRandomness())
    certificates = certificates_of({"certificates": settings.get("certificates", {}).get(party)})
    with (
        TableFile(folder / "study" / "tables") as kept,
        connect(name, settings["address"], settings["keys"], certificates=certificates) as link,
    ):
        say(f"ready {len(kept.tables)}")
        transport = NetworkTransport(Mailbox(link, identity, patience), (*sites, DEALER))
        others = analysts_of(settings)
        keys = {p: key for p, key in identity.peers.items() if p not in others}
        role = AnalystRole(party, public_keys=keys)
        with Session(role, transport) as session:
            counter = SecureCounter(
                open_study(session, sites, DEALER, order=settings["order"], study=kept.study), kept
            )
            np.savez(folder / "model.npz", **learned(counter))
        say("learned")


if __name__ == "__main__":
    main(*sys.argv[1:])
