"""Make a small database in the form of OMOP's common data model, of invented people.

It has three tables of the model, with the columns that `site-part.toml` reads: person,
condition_occurrence and measurement. A person has any number of conditions and measurements.

    python examples/omop/make_database.py omop.duckdb

No record is of a real person. It needs duckdb: pip install 'vertibayes[duckdb]'
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np

Row: TypeAlias = tuple[object, ...]

PEOPLE = 500
MALE, FEMALE = 8507, 8532
DIABETES, HYPERTENSION = 201826, 320128
HBA1C, SYSTOLIC = 3004410, 3004249

TABLES = """
create table person (
    person_id bigint primary key, gender_concept_id integer, year_of_birth integer);
create table condition_occurrence (
    condition_occurrence_id bigint primary key, person_id bigint, condition_concept_id integer,
    condition_start_date date);
create table measurement (
    measurement_id bigint primary key, person_id bigint, measurement_concept_id integer,
    measurement_date date, value_as_number double);
"""


def main(path: Path) -> None:
    """Write the database; the file must be new."""
    draw = np.random.default_rng(7)
    people: list[Row] = []
    conditions: list[Row] = []
    measurements: list[Row] = []
    for person in draw.permutation(10 * PEOPLE)[:PEOPLE].tolist():
        born = int(draw.integers(1935, 2005))
        diabetic = draw.random() < 0.05 + (2005 - born) / 250
        tense = draw.random() < 0.1 + 0.3 * diabetic
        people.append((person, int(draw.choice([MALE, FEMALE])), born))
        given = [DIABETES] * int(diabetic) * 2 + [HYPERTENSION] * int(tense)
        conditions += [(person, concept, day(draw)) for concept in given]
        for _ in range(int(draw.integers(0, 4))):
            level = round(float(draw.normal(7.5 if diabetic else 5.4, 0.6)), 1)
            measurements.append((person, HBA1C, day(draw), level))
        for _ in range(int(draw.integers(1, 4))):
            pressure = float(round(draw.normal(150 if tense else 125, 10)))
            measurements.append((person, SYSTOLIC, day(draw), pressure))
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLES)
        insert(connection, "person", people)
        insert(connection, "condition_occurrence", numbered(conditions))
        insert(connection, "measurement", numbered(measurements))


def day(draw: np.random.Generator) -> str:
    """Draw a day of the year 2024."""
    return str(date(2024, 1, 1) + timedelta(days=int(draw.integers(0, 366))))


def numbered(rows: Sequence[Row]) -> list[Row]:
    """Put a number before each row."""
    return [(number, *row) for number, row in enumerate(rows, 1)]


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    """Insert rows in one statement: DuckDB is slow row by row."""
    values = ", ".join(
        "(" + ", ".join(f"'{v}'" if isinstance(v, str) else str(v) for v in row) + ")"
        for row in rows
    )
    connection.execute(f"insert into {table} values {values}")  # noqa: S608


if __name__ == "__main__":
    main(Path(sys.argv[1]))
