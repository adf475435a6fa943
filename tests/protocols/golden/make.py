"""The golden record, made again: compared by `tests/protocols/test_golden_record.py`, written by

    python -m tests.protocols.golden.make [--replace]

Without `--replace` it adds entries, and refuses to change those that are recorded.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

from tests.protocols.golden.queries import IN_A_RUN, QUERIES
from tests.protocols.golden.record import (
    LATE,
    SIDE_BY_SIDE,
    after_crashes,
    answered,
    changed_data,
    first_look,
    other_people,
    side_by_side,
)
from tests.protocols.golden.runs import (
    broken_run,
    exact_tables,
    first_look_at_a_run,
    first_look_at_two_noisy_runs,
    run_of,
    two_runs,
)
from tests.protocols.golden.worlds import AGREED, FIRST

RECORD = Path(__file__).with_name("record.json")
CHANGED = "tables", "choose", "release, laplace", "predict", "score table, laplace"
PEOPLE = {
    "the same": ((1, "all"), (1, "all")),
    "fewer": ((1, "all"), (1, "fewer")),
    "values changed": ((1, "all"), (1, "changed")),
    "fewer after unknown people": ((2, "all"), (1, "fewer")),
    "fewer, unknown": ((1, "all"), (2, "fewer")),
    "values changed of unknown people": ((2, "all"), (2, "changed")),
}
BROKEN = ("choose", AGREED), ("choose", FIRST), ("release", AGREED), ("release", FIRST)

ALIKE = {  # at the first look, like the queries that they are variants of
    "release, cut", "score table, cut", "predict some records", "scores, product",
    "sums, laplace", "updates, gossip",
}  # fmt: skip

CASES = {
    **{f"first look: {n}": partial(first_look, QUERIES[n]) for n in QUERIES if n not in ALIKE},
    **{f"answered: {name}": partial(answered, asked) for name, asked in QUERIES.items()},
    **{
        f"side by side: {rule}, {name}{f', after {of[0]}' if of else ''}": partial(
            side_by_side, rule, name, *contents, *of
        )
        for rule, name, *contents, of in ((*case[:4], case[4:]) for case in SIDE_BY_SIDE)
    },
    **{
        f"side by side, late: {case[0]}, {case[1]}": partial(side_by_side, *case, point=FIRST)
        for case in LATE
    },
    **{
        f"after a crash: {case[0]}, {case[1]}": partial(after_crashes, *case)
        for case in SIDE_BY_SIDE
        if len(case) == 4
    },
    **{f"changed data: {name}": partial(changed_data, QUERIES[name]) for name in CHANGED},
    **{f"people: {name}": partial(other_people, *two) for name, two in PEOPLE.items()},
    "first look: begin": first_look_at_a_run,
    "first look: begin with noise": first_look_at_two_noisy_runs,
    **{f"in a run: {name}": partial(run_of, name) for name in IN_A_RUN},
    "in a run: exact tables": exact_tables,
    "side by side: choose in runs of two contracts": partial(two_runs, same=False),
    "side by side: begin of one contract": partial(two_runs, same=True),
    **{f"a broken run: {name} {point}": partial(broken_run, name, point) for name, point in BROKEN},
}


def recorded(path: Path = RECORD):
    """Return the record: {case: entry}."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(made, path: Path = RECORD, *, replace: bool = False) -> None:
    """Write the record; a ValueError if an entry would change, or be lost, without `replace`."""
    known = recorded(path)
    changed = [case for case in known if made.get(case) != known[case]]
    if changed and not replace:
        raise ValueError(f"other than recorded: {'; '.join(changed)}. See --replace")
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    """Write the record."""
    try:
        write({case: make() for case, make in CASES.items()}, replace="--replace" in sys.argv)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
