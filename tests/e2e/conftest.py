"""Files that the command line reads."""

from __future__ import annotations

import pytest

from tests.e2e.command import rows_of, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory, alarm_data):
    """Six of ALARM's columns as a file, and as one file a site in other orders."""
    path = tmp_path_factory.mktemp("data")
    data = alarm_data.take(["HISTORY", "LVFAILURE", "CVP", "PCWP", "LVEDVOLUME", "HYPOVOLEMIA"])
    names, rows = list(data.variables), rows_of(data)
    write(path / "all.csv", names, rows)
    numbered = [[f"p{i}", *row] for i, row in enumerate(rows)]
    write(path / "ids.csv.gz", ["id", *names], numbered)
    write(path / "a.csv", ["id", *names[:3]], [r[:4] for r in numbered])
    write(path / "b.csv", ["id", *names[3:]], [[r[0], *r[4:]] for r in numbered[::-1]])
    return path
