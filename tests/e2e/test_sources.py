"""Commands with other files than CSV."""

from __future__ import annotations

import pytest

from tests.e2e.command import learn, outputs, run, write

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

ROWS = [(f"p{n:03}", n % 2, "ab"[n // 7 % 2], (n * 37) % 101) for n in range(300)]
NAMES = ["id", "x", "y", "age"]


def test_learn_and_predict_read_parquet_files_and_folders(tmp_path, capsys):
    write(tmp_path / "d.csv", NAMES, ROWS)
    table = pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True)))
    pq.write_table(table, tmp_path / "d.parquet")
    (tmp_path / "parts").mkdir()
    pq.write_table(table[:100], tmp_path / "parts" / "1.parquet")
    pq.write_table(table[100:], tmp_path / "parts" / "2.parquet")
    results = []
    for name in ("d.csv", "d.parquet", "parts"):
        data, out = tmp_path / name, tmp_path / f"out-{name}"
        options = ("--sites", 2, "--id-column", "id")
        code, _, error = learn(capsys, out, "--data", data, *options)
        assert code == 0, error
        new = tmp_path / f"{name}.out.csv"
        code, _, error = run(
            capsys, "predict", "--model", out / "model.json", "--data", data, "--target", "y",
            "--out", new, "--id-column", "id",
        )  # fmt: skip
        assert code == 0, error
        results.append((outputs(out)[0], (out / "model.json").read_text(), new.read_text()))
    assert results[0] == results[1] == results[2]


def test_a_parquet_file_that_cannot_be_read_is_one_error(tmp_path, capsys):
    (tmp_path / "d.parquet").write_bytes(b"PAR1" + bytes(20))
    code, out, error = learn(
        capsys, tmp_path / "out", "--data", tmp_path / "d.parquet", "--sites", 2
    )
    assert (code, out) == (2, "") and error.count("\n") == 1
    assert error.startswith(f"vertibayes: {tmp_path / 'd.parquet'}: cannot be read as Parquet (")
    assert not (tmp_path / "out").exists()


def test_schema_prints_a_draft_or_one_error(tmp_path, capsys):
    path = write(tmp_path / "d.csv", NAMES, ROWS)
    code, out, _ = run(capsys, "schema", path)
    assert code == 0 and '"x" = { states = ["0", "1"] }' in out
    code, out, error = run(capsys, "schema", tmp_path / "none.csv")
    assert (code, out, error) == (2, "", f"vertibayes: {tmp_path / 'none.csv'}: no such file\n")
    code, _, error = run(capsys, "schema", path, path, path)
    assert code == 2 and "takes one file, or two to compare: got 3" in error
