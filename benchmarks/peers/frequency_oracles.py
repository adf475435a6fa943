"""Frequency oracles of pure-ldp or multi-freq-ldpy: seconds to perturb and aggregate, as JSON.

    PYTHON benchmarks/peers/frequency_oracles.py LIBRARY USERS DOMAIN EPS REPEATS

PYTHON is that of an environment with the library and without this project. `benchmarks/oracles.py`
starts this script.
"""

from __future__ import annotations

import json
import sys
from statistics import median
from time import perf_counter


def pure_ldp(domain, eps):
    """Return a run for each oracle, from the values of all people to estimates."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.histogram_encoding import HEClient, HEServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def run(client_class, server_class, client_options=None, server_options=None):
        def values_to_estimates(values):
            same = {"index_mapper": lambda value: value}
            client = client_class(eps, domain, **(client_options or {}), **same)
            server = server_class(eps, domain, **(server_options or {}), **same)
            for value in values:
                server.aggregate(client.privatise(value))
            return [server.estimate(value, suppress_warnings=True) for value in range(domain)]

        return values_to_estimates

    optimal, threshold = {"use_oue": True}, {"use_the": True}
    return {
        "de": run(DEClient, DEServer),
        "sue": run(UEClient, UEServer),
        "oue": run(UEClient, UEServer, optimal, optimal),
        "the": run(HEClient, HEServer, None, threshold),
        "she": run(HEClient, HEServer),
    }


def multi_freq_ldpy(domain, eps):
    """Return a run for each oracle, from the values of all people to estimates."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, HE, SS, UE

    def run(client, aggregate):
        return lambda values: aggregate([client(value) for value in values])

    return {
        "de": run(
            lambda v: GRR.GRR_Client(v, domain, eps),
            lambda r: GRR.GRR_Aggregator_MI(r, domain, eps),
        ),
        "sue": run(
            lambda v: UE.UE_Client(v, domain, eps, False),
            lambda r: UE.UE_Aggregator_MI(r, eps, False),
        ),
        "oue": run(
            lambda v: UE.UE_Client(v, domain, eps, True),
            lambda r: UE.UE_Aggregator_MI(r, eps, True),
        ),
        "the": run(
            lambda v: HE.HE_Client(v, domain, eps),
            lambda r: HE.HE_Aggregator_MI(r, domain, eps, True),
        ),
        "ss": run(
            lambda v: SS.SS_Client(v, domain, eps),
            lambda r: SS.SS_Aggregator_MI(r, domain, eps),
        ),
        "she": run(
            lambda v: HE.HE_Client(v, domain, eps),
            lambda r: HE.HE_Aggregator_MI(r, domain, eps, False),
        ),
    }


def seconds(run, values, repeats):
    """Return the median seconds of several runs, after a short one that may compile."""
    run(values[:20])
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run(values)
        times.append(perf_counter() - start)
    return median(times)


def main():
    """Print the seconds of each oracle."""
    library, users, domain, eps, repeats = sys.argv[1:]
    runs = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}[library](
        int(domain), float(eps)
    )
    values = [person % int(domain) for person in range(int(users))]
    print(json.dumps({name: seconds(run, values, int(repeats)) for name, run in runs.items()}))


if __name__ == "__main__":
    main()
