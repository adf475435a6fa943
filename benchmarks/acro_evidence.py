"""The verdicts of `release/` beside ACRO's own checks of the same tables.

    python benchmarks/acro_evidence.py --data FOLDER --acro PYTHON

PYTHON is that of an environment with ACRO 1.0.2, which is not a dependency of this project. ALARM,
10,000 records, the tables of the true structure. A table agrees if both mark the same cells as
counts above 0 and below the threshold, and if our verdict is "fail" for just these tables. ACRO's
threshold also marks cells of 0. With the rule exact, ACRO also counts each table itself from the
pooled records: column "same files" has the number of tables with parents whose CSV and entry of
evidence.json ACRO writes in the same way.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from missing import completely_at_random
from runs import arguments
from side_by_side import table

from vertibayes.counting import PlainCounter
from vertibayes.counting.released import ReleasedCounter
from vertibayes.dag import Structure
from vertibayes.network import read_model
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.report.release import write_release
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData

PEER = Path(__file__).parent / "peers" / "acro_checks.py"
RULES = Rule("exact"), Rule("exact", fewest=5), Rule("cut", fewest=5), Rule("cut")
HOW_TO = """{python} cannot import acro. Make an environment with it:

    python -m venv .venv-acro
    .venv-acro/bin/pip install acro==1.0.2
    python benchmarks/acro_evidence.py --data FOLDER --acro .venv-acro/bin/python"""


def released(folder: Path, data: SiteData, structure: Structure, rule: Rule) -> None:
    """Write `release/` for tables of pooled records."""
    plain = PlainCounter(data)
    tables = plain.tables(structure.families)
    if rule.kind == "cut":
        tables = [np.where(counts < rule.fewest, 0, counts) for counts in tables]
    request = FamilyTables(structure.families, missing=False, rule=rule)
    counter = ReleasedCounter(data.variables, data.records, request, tables)
    write_release(folder, counter, fit_cpts(counter, structure), ledger=Ledger())


def checked(python: str, *arguments: Path) -> dict[str, int]:
    """Run ACRO's checks in its environment."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [python, str(PEER), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(python: str, data: SiteData, structure: Structure, rule: Rule) -> list[object]:
    """Release by a rule, and compare."""
    with tempfile.TemporaryDirectory() as at:
        folder, records = Path(at) / "release", Path(at) / "records.csv"
        released(folder, data, structure, rule)
        columns = [np.array(v.states)[data.codes[n]] for n, v in data.variables.items()]
        lines = [",".join(data.variables), *map(",".join, zip(*columns, strict=True))]
        records.write_text("\n".join(lines) + "\n", encoding="utf-8")
        exact = rule.kind == "exact"
        found = checked(python, folder, *([records] if exact else []))
    same = f"{found['same']} of {sum(map(bool, structure.parents.values()))}" if exact else "-"
    agree = f"{found['agree']} of {found['tables']}"
    cells = found["ours"], found["small"], found["small_or_zero"]
    return [rule.kind, rule.fewest, *cells, agree, found["fail"], same]


def main() -> None:
    """Compare for each rule and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--acro", default=sys.executable, help="Python of ACRO's environment.")
    given = arguments(parser, seeded=False, data=True)
    imported = subprocess.run([given.acro, "-c", "import acro"], capture_output=True, check=False)
    if imported.returncode:
        parser.exit(2, HOW_TO.format(python=given.acro) + "\n")
    folder = given.data
    truth = read_model(folder / "alarm" / "alarm.bif")
    data = completely_at_random(folder, "alarm", 0, truth)
    rows = [row(given.acro, data, truth.structure, rule) for rule in RULES]
    head = ["rule", "threshold", "small cells: ours", "ACRO's", "ACRO's with zeros"]
    head += ["tables that agree", "ACRO fails", "same files"]
    print(table("acro_evidence", head, rows))


if __name__ == "__main__":
    main()
