"""Draw records of 2,000 invented people for the three organizations of the example.

Each organization has its own columns, and its records are in an order of their own.

    python examples/three_sites/make_records.py FOLDER

No record is of a real person. Real organizations have their files already.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PEOPLE = 2_000


def main(folder: Path) -> None:
    """Write a file of records into the folder of each organization."""
    draw = np.random.default_rng(20)
    people = np.array([f"P{number:06}" for number in draw.permutation(10 * PEOPLE)[:PEOPLE]])
    age = draw.integers(20, 90, PEOPLE)
    smokes = draw.random(PEOPLE) < np.where(age < 60, 0.35, 0.2)
    bronchitis = draw.random(PEOPLE) < np.where(smokes, 0.5, 0.15)
    beta_blocker = draw.random(PEOPLE) < np.where(age > 55, 0.4, 0.05)
    admitted = draw.random(PEOPLE) < 0.05 + 0.4 * bronchitis + 0.1 * beta_blocker
    lost_work = np.where(admitted, draw.integers(1, 3, PEOPLE), draw.integers(0, 2, PEOPLE))
    write(draw, folder / "clinic", people, age=age, smokes=word(smokes))
    write(
        draw,
        folder / "hospital",
        people,
        bronchitis=word(bronchitis),
        beta_blocker=word(beta_blocker),
        admitted=word(admitted),
    )
    write(
        draw,
        folder / "registry",
        people,
        lost_work=np.array(["none", "weeks", "months"])[lost_work],
    )


def word(values: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Return `yes` for each true value and `no` for each false one."""
    return np.where(values, "yes", "no")


def write(
    draw: np.random.Generator, folder: Path, people: NDArray[np.str_], **columns: NDArray[Any]
) -> None:
    """Write the columns of one organization, with the people in a random order."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "records.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", *columns])
        for at in draw.permutation(len(people)):
            writer.writerow([people[at], *(column[at] for column in columns.values())])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
