"""Read 10^7 records of 10 columns from each source: seconds, processor time, peak memory.

Each reader runs in a process of its own, on the same table: identifiers, and nine columns of codes,
numbers and texts. What is measured is `read_table`, then the encoding of all columns and the order
of the identifiers: all that a site does before it serves. pandas reads the same files beside it,
and encodes nothing.

    python benchmarks/sources.py --records 10_000_000

With ``--alarm FOLDER``, a CSV file of 10^6 records of ALARM's 37 columns and identifiers is read,
beside pyarrow (the columns as codes, the identifiers as texts), pandas, and Python's reader of CSV.
"Memory" is the peak beyond what the process has before it reads.

    python benchmarks/sources.py --records 1_000_000 --alarm FOLDER
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from runs import arguments, seed_of
from side_by_side import table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.sources.database import Database
from vertibayes_protocols.site.sources.reading import read_table
from vertibayes_protocols.site.text import read_columns

BATCH = 1 << 18
OWN = ("vertibayes", "vertibayes, Python's reader")
READERS = ("csv", "parquet", "duckdb", "postgresql", "pandas csv", "pandas parquet")


def batch(start: int, end: int, places: np.ndarray):
    """Draw a part of the table."""
    import pyarrow as pa

    draw = np.random.default_rng((seed_of(), start))
    size = end - start
    return pa.table(
        {
            "id": [f"p{place:08}" for place in places[start:end].tolist()],
            "age": draw.integers(18, 100, size),
            "sex": np.array(["f", "m"])[draw.integers(0, 2, size)],
            "smoker": draw.random(size) < 0.3,
            "bmi": np.round(draw.normal(27, 4, size), 1),
            "pulse": pa.array(draw.integers(40, 180, size), mask=draw.random(size) < 0.1),
            "stage": np.array(["I", "II", "III", "IV"])[draw.integers(0, 4, size)],
            "region": draw.integers(0, 60, size),
            "dose": np.array([0.0, 0.5, 1.0, 2.5])[draw.integers(0, 4, size)],
            "code": np.array([f"C{c:02}" for c in range(90)])[draw.integers(0, 90, size)],
        }
    )


def make(folder: Path, records: int, url: str | None) -> None:
    """Write the table to every store, part by part."""
    import duckdb
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    places = np.random.default_rng(seed_of()).permutation(records)
    schema = batch(0, 1, places).schema
    names = folder / "t.csv", folder / "t.parquet"
    with pc.CSVWriter(names[0], schema) as text, pq.ParquetWriter(names[1], schema) as parquet:
        for start in range(0, records, BATCH):
            part = batch(start, min(start + BATCH, records), places)
            text.write_table(part)
            parquet.write_table(part)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"create table t as select * from read_parquet('{names[1]}')")
    if url is not None:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("t", pq.ParquetFile(names[1]).iter_batches(), mode="create")
            connection.commit()


def read(reader: str, folder: Path, url: str) -> dict[str, float]:
    """Read the table once, and say what it took."""
    began, used = time.perf_counter(), time.process_time()
    if reader.startswith("pandas"):
        import pandas as pd

        if reader == "pandas csv":
            pd.read_csv(folder / "t.csv")
        else:
            pd.read_parquet(folder / "t.parquet")
        after = time.perf_counter()
    else:
        source = {
            "csv": folder / "t.csv",
            "parquet": folder / "t.parquet",
            "duckdb": Database(folder / "t.duckdb", table="t"),
            "postgresql": Database(url, table="t"),
        }[reader]
        columns = read_table(source, keys="id")
        after = time.perf_counter()
        ids = columns.pop("id")
        data = SiteData.from_text("t", columns, Encoding(), ids, strict=False)
        del columns
        data.in_order_of_ids()
    return {
        "read s": round(after - began, 1),
        "all s": round(time.perf_counter() - began, 1),
        "processor s": round(time.process_time() - used, 1),
        "peak MiB": peak(),
    }


def peak(which: str = "VmHWM") -> int:
    """Return this process's largest memory, in MiB; that of its parent before it does not count."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(which + r":\s+(\d+)", status)[1]) // 1024


def make_alarm(folder: Path, records: int, given: Path) -> None:
    """Write records of ALARM, drawn with repetitions, with an identifier each."""
    header, *lines = gzip.decompress((given / "alarm/alarm.csv.gz").read_bytes()).splitlines()
    rests = [line.partition(b",")[2] for line in lines]
    draw = np.random.default_rng(seed_of())
    chosen = draw.integers(0, len(lines), records)
    with (folder / "t.csv").open("wb") as file:
        file.write(b"id," + header.partition(b",")[2] + b"\n")
        for person, place in zip(draw.permutation(records), chosen, strict=True):
            file.write(b"p%08d,%s\n" % (person, rests[place]))


def read_alarm(reader: str, folder: Path) -> dict[str, float]:
    """Read ALARM's records once; by vertibayes, to codes and in the order of the identifiers."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv

    path = folder / "t.csv"
    with path.open() as file:
        header = file.readline().strip().split(",")
    codes = dict.fromkeys(header, pa.dictionary(pa.int32(), pa.string())) | {"id": pa.string()}
    before, used = peak("VmRSS"), time.process_time()
    if reader == "pyarrow":
        kept = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=codes))
    elif reader == "pandas":
        kept = pd.read_csv(path)
    else:
        kept = (
            read_table(path, keys="id") if reader == "vertibayes" else read_columns(path, keys="id")
        )
    seconds = time.process_time() - used
    if isinstance(kept, dict):
        ids = kept.pop("id")
        data = SiteData.from_text("t", kept, Encoding(), ids, strict=False)
        del kept
        kept = data.in_order_of_ids()
    return {
        "read s": round(seconds, 2),
        "all s": round(time.process_time() - used, 2),
        "memory MiB": peak() - before,
        "codes MiB": sum(c.nbytes for c in kept.codes.values()) >> 20 if reader in OWN else "",
    }


def run_alarm(records: int, given: Path) -> None:
    """Print each reader's processor seconds and memory, and the ratio to pyarrow's seconds."""
    with tempfile.TemporaryDirectory() as name:
        make_alarm(Path(name), records, given)
        rows = []
        for reader in ("pyarrow", "pandas", *OWN):
            command = [sys.executable, __file__, "--reader", reader, name, "alarm"]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({"reader": reader, **json.loads(ran.stdout)})
            rows[-1]["times pyarrow"] = f"{rows[-1]['all s'] / rows[0]['all s']:.2f}"
            print(rows[-1], flush=True)
    print(table("sources_csv", list(rows[0]), [list(row.values()) for row in rows]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--alarm", type=Path, metavar="FOLDER", help="the folder of the data")
    parser.add_argument("--reader", nargs=3, help=argparse.SUPPRESS)
    given = arguments(parser)
    if given.reader:
        reader, folder, url = given.reader
        found = read_alarm(reader, Path(folder)) if url == "alarm" else None
        print(json.dumps(found or read(reader, Path(folder), url)))
        return
    if given.alarm:
        run_alarm(given.records, given.alarm)
        return
    from tests.protocols.site.postgresql import NoServerError, running

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with running() as server:
                os.environ["PGPASSWORD"] = server.password
                make(folder, given.records, server.url)
                _run(folder, server.url, READERS)
        except NoServerError as error:
            print(error)
            make(folder, given.records, None)
            _run(
                folder,
                "postgresql:///none",
                [reader for reader in READERS if reader != "postgresql"],
            )


def _run(folder: Path, url: str, readers) -> None:
    rows = []
    for reader in readers:
        command = [sys.executable, __file__, "--reader", reader, str(folder), url]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            print(reader, ran.stderr.strip().splitlines()[-1], flush=True)
            continue
        rows.append({"source": reader, **json.loads(ran.stdout)})
        print(rows[-1], flush=True)
    print(table("sources", list(rows[0]), [list(row.values()) for row in rows]))


if __name__ == "__main__":
    main()
