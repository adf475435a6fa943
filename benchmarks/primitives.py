"""Each primitive beside its peer, in one run: seconds, and what each trusts.

    python benchmarks/primitives.py [NAME ...]

NAME is one of the modules of benchmarks/peers; all by default. The peers mpyc and flwr are wanted
beside the test group, in an environment of their own; a module whose peer is not there says so.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from runs import arguments
from side_by_side import on_one_thread, table

on_one_thread()

NAMES = ("masked_sum", "paillier", "additive_scheme", "membership", "noise", "scalar_product")
HEADER = ["primitive", "ours", "peer", "peer's", "ratio", "ours trusts", "the peer trusts"]


def main() -> None:
    """Print a table of each module's rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*NAMES, []], metavar="NAME")
    for name in arguments(parser, seeded=False).parts or NAMES:
        try:
            rows = import_module(f"peers.{name}").rows()
        except ImportError as error:
            print(f"\n{name}: not run, {error}")
            continue
        print(f"\n## {name}\n\n{table(f'primitives_{name}', HEADER, rows)}", flush=True)


if __name__ == "__main__":
    main()
