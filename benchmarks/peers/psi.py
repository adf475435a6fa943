"""openmined-psi between two parties: CPU seconds, bytes and the size of the intersection, as JSON.

    PYTHON benchmarks/peers/psi.py KEYS SITES

PYTHON is an interpreter with the package `openmined-psi`. It intersects the lists of two parties;
of more sites, the first asks each of the others, and so sees each pair's overlap.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import process_time

import private_set_intersection.python as psi

sys.path.insert(0, str(Path(__file__).parents[1]))
from alignment_lists import lists_of

FALSE_POSITIVES = 1e-9  # raw keys have none; the interface expects the number


def main(keys: int, sites: int) -> None:
    """Intersect the first list with each other list."""
    mine, *others = (list(map(bytes.decode, people)) for people in lists_of(keys, sites))
    start, traffic, common = process_time(), 0, set(range(keys))
    for theirs in others:
        client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
        setup = server.CreateSetupMessage(FALSE_POSITIVES, len(mine), theirs, psi.DataStructure.RAW)
        request = client.CreateRequest(mine)
        response = server.ProcessRequest(request)
        common &= set(client.GetIntersection(setup, response))
        traffic += sum(len(m.SerializeToString()) for m in (setup, request, response))
    print(json.dumps([process_time() - start, traffic, len(common)]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
