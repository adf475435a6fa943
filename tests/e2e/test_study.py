"""Parties from their files, all in one process: whatever does not depend on who moves the bytes."""

import json
import re
import runpy
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, refused, run_in_one_process
from tests.paillier_worlds import small_keys
from tests.protocols.deployment.parties import (
    SITES,
    change,
    changed_key,
    count_by,
    deployment,
    pooled,
    records,
)
from tests.randomness import SeededRandomness
from vertibayes.counting import PlainCounter
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.structure.learners import k2
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.keys import read_private
from vertibayes_protocols.deployment.log import line
from vertibayes_protocols.deployment.running import site_role
from vertibayes_protocols.public_keys import encode_public

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_sites"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = deployment(tmp_path / "all")
    run_in_one_process(monkeypatch, folder)
    return folder


def test_the_model_is_that_of_the_pooled_records(capsys, folder, tmp_path):
    code, output, _ = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0 and "300 records, 5 variables at 3 sites" in output
    plain = learn(PlainCounter(pooled(folder)), Options(max_parents=3))
    found = json.loads((tmp_path / "out" / "structure.json").read_text())
    assert [tuple(edge) for edge in found["edges"]] == list(plain.network.structure.edges)
    assert len(found["edges"]) >= 2
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["scores"] == plain.scores.as_json()
    assert summary["sites"]["north"] == ["age", "sex"]


def test_a_study_that_counts_by_paillier_needs_no_dealer(capsys, folder, tmp_path):
    rmtree(folder / "dealer")
    study = folder / "analyst" / "study.toml"
    pinned = study.read_text(encoding="utf-8")
    count_by(folder, "paillier")
    without = re.sub(r"(?m)^\[dealer\][^\[]*", "", study.read_text(encoding="utf-8"))
    study.write_text(without, encoding="utf-8")
    code, output, _ = run(capsys, "check", study, "--meet")
    assert code == 0 and "ok      the sites have the keys and the version of this" in output
    with small_keys():
        code, output, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0, error
    plain = learn(PlainCounter(pooled(folder)), Options(max_parents=3))
    found = json.loads((tmp_path / "out" / "structure.json").read_text())
    assert [tuple(edge) for edge in found["edges"]] == list(plain.network.structure.edges)
    change(study, 'count_by = "paillier"', 'count_by = "masked-tables"')
    code, output, _ = run(capsys, "check", study)
    assert code == 2 and "dealer: missing; expected [dealer] with name and public_key" in output
    study.write_text(pinned, encoding="utf-8")
    rmtree(folder / "analyst" / "study")
    code, _, error = learn_study(capsys, folder, tmp_path / "masked")
    assert code and "dealer" in error


def test_a_study_that_counts_by_scalar_products_has_the_same_model(capsys, folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    learn_study(capsys, folder, tmp_path / "masked")
    count_by(folder, "scalar-product")
    code, _, error = learn_study(capsys, folder, tmp_path / "resumed")
    assert code == 2 and "is of a study with other count_by than" in error
    change(study, 'folder = "study" ', 'folder = "another" ')
    code, _, _ = learn_study(capsys, folder, tmp_path / "products")
    assert code == 0
    one, other = ((tmp_path / name / "model.bif").read_text() for name in ("masked", "products"))
    assert one == other
    summary = json.loads((tmp_path / "products" / "summary.json").read_text())
    assert summary["count_by"] == "scalar-product" and summary["opened"]["tables"]


def test_an_approved_study_counts_by_masked_tables(capsys, tmp_path):
    folder = deployment(tmp_path / "all", free=False)
    study = folder / "analyst" / "study.toml"
    count_by(folder, "scalar-product")
    code, output, _ = run(capsys, "check", study)
    assert code == 2 and "study.count_by: approved studies count by masked-tables" in output


def test_a_holdout_needs_masked_tables(capsys, folder):
    study = folder / "analyst" / "study.toml"
    change(study, '# count_by = "masked-tables"', 'count_by = "paillier"')
    change(study, "# [validation]", '[validation]\ntarget = "sex"\nvalidate = ["holdout"]\n#')
    code, output, _ = run(capsys, "check", study)
    assert code == 2 and re.search(r"line \d+: validation.validate: holdout needs masked", output)


def test_tables_beyond_the_memory_of_a_study_are_refused_with_what_fits(capsys, folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    change(study, '# memory = "1GiB" ', 'memory = "1kB" ')
    code, _, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 2 and "expected:" not in error
    assert "memory in study.toml and most_memory in each [policy] of 1MiB" in error
    change(study, 'memory = "1kB" ', 'memory = "1MiB" ')
    assert learn_study(capsys, folder, tmp_path / "more")[0] == 0


def test_check_has_the_parties_of_a_study_meet(capsys, folder):
    study = folder / "analyst" / "study.toml"
    code, output, _ = run(capsys, "check", study, "--meet")
    assert code == 0 and "the sites hold the same people" in output
    assert "ok      north: 300 records; variables and their states: age (4), sex (2)" in output
    assert not (folder / "analyst" / "study").exists()
    path = folder / "south" / "records.csv"
    path.write_text(path.read_text().replace(records()[0][0], "somebody-else"))
    code, output, _ = run(capsys, "check", study, "--meet")
    assert code == 2 and "wrong   the records are not the same at north and south" in output
    changed_key(study, "south", encode_public(STRANGER.public))
    code, output, _ = run(capsys, "check", study, "--meet")
    assert code == 2 and "wrong   north refuses: the study has another public key" in output


def test_check_meets_the_parties_of_a_study_alone(capsys, folder):
    code, _, error = run(capsys, "check", folder / "north" / "site.toml", "--meet")
    assert code == 2 and "site.toml" in error


def test_a_study_gone_on_with_asks_only_what_is_missing(capsys, folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    change(study, "max_parents = 3", "max_parents = 1")
    learn_study(capsys, folder, tmp_path / "first")
    ledger = SiteFile.read(folder / "north" / "site.toml").ledger
    before = ledger.read_text().count('"tables"')
    code, _, error = learn_study(capsys, folder, tmp_path / "again")
    assert code == 0 and "resuming the study with" in error
    assert ledger.read_text().count('"tables"') == before
    for file in ("model.bif", "structure.json"):
        assert (tmp_path / "first" / file).read_text() == (tmp_path / "again" / file).read_text()
    for what in ("tables", "revealed"):
        found = [ledger_of(tmp_path / run)[what] for run in ("first", "again")]
        assert sorted(map(str, found[0])) == sorted(map(str, found[1]))
    change(study, "max_parents = 1", "max_parents = 3")
    assert learn_study(capsys, folder, tmp_path / "more")[0] == 0
    plain = learn(PlainCounter(pooled(folder)), Options(max_parents=3))
    more = json.loads((tmp_path / "more" / "summary.json").read_text())
    assert more["scores"] == plain.scores.as_json()


def ledger_of(folder, name="ledger.json"):
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize(
    ("stop", "status"),
    [(KeyboardInterrupt, 130), (SystemExit(143), 143), (ValueError("a site went"), 2)],
)
def test_a_run_that_failed_is_started_again_as_it_was_and_its_ledger_is_kept(
    capsys, folder, tmp_path, monkeypatch, stop, status
):
    out = tmp_path / "out"
    out.mkdir()
    with monkeypatch.context() as broken:
        broken.setattr("vertibayes.learning.fit_cpts", lambda *_, **__: raise_(stop))
        failed = [learn_study(capsys, folder, out)[0] for _ in range(2)]
    assert failed == [status] * 2
    first, second = (ledger_of(out, name) for name in ("ledger-1.json", "ledger.json"))
    assert first["tables"] and len(list(out.iterdir())) == 2
    assert learn_study(capsys, folder, out)[0] == 0
    assert [ledger_of(out, f"ledger-{number}.json") for number in (1, 2)] == [first, second]
    opened = ledger_of(out)["tables"]
    assert all(table in opened for table in first["tables"])
    assert (out / "model.bif").exists() and [path.name for path in tmp_path.glob(".*")] == []
    code, _, error = learn_study(capsys, folder, out)
    assert code == 2 and "specify a new or empty folder" in error


def raise_(error):
    raise error


def test_the_summary_names_the_study_its_parties_keys_and_whose_bytes_it_counts(
    capsys, folder, tmp_path
):
    code, output, _ = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0 and re.search(r"sent by analyst: [0-9.]+ kB in \d+ rounds", output)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["bytes"]["sent_by"] == "analyst"
    study = summary["study"]
    public = read_private(folder / "north" / "north.key").public
    assert study["keys"]["north"] == encode_public(public)
    assert set(study["keys"]) == {*SITES, "dealer"} and len(study["id"]) == 32
    assert study["file"].endswith("study.toml")
    age = datetime.now(UTC) - datetime.fromisoformat(summary["written"])
    assert timedelta() <= age + timedelta(seconds=1) < timedelta(minutes=1)


def test_an_analyst_learns_from_python(capsys, folder, monkeypatch):
    """The example's script, in another study; run again, it has all its tables."""
    monkeypatch.chdir(folder / "analyst")
    found = runpy.run_path(str(EXAMPLE / "analyst" / "learn.py"))
    plain = PlainCounter(pooled(folder))
    wanted = k2(plain, max_parents=2)
    assert found["structure"] == wanted and wanted.edges and found["model"].check_model()
    cpts = fit_cpts(plain, wanted, pseudo_count=0.5).cpts
    assert all(np.array_equal(found["network"].cpts[name], cpts[name]) for name in cpts)
    assert "300 records, edges [(" in capsys.readouterr().out and found["calls"]
    assert runpy.run_path(str(EXAMPLE / "analyst" / "learn.py"))["calls"] == 0
    assert SiteFile.read(folder / "north" / "site.toml").ledger.exists()


def test_no_key_record_or_identifier_is_in_a_log_an_error_or_a_file_of_the_analyst(
    capsys, folder, tmp_path
):
    change(folder / "south" / "site.toml", "fewest_records = 10", "fewest_records = 200")
    plant(folder / "north" / "records.csv")
    study = folder / "analyst" / "study.toml"
    change(study, "# structure_records = 10_000", "structure_records = 100")
    code, _, error = learn_study(capsys, folder, tmp_path / "refused")
    assert code == 2 and "south refuses: tables over 100 records" in error
    change(study, "structure_records = 100", "")
    code, output, more = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0
    logged = error + output + more
    assert "south refused query=tables" in logged and "north agreed query=commit" in logged
    agreed = [text for text in logged.splitlines() if " agreed " in text]
    of = r'session=0{8} analyst=[a-z]+( study="([0-9a-f]{4} ?){4}")?'
    shape = re.compile(rf"[-0-9]+T[:.0-9]+\+00:00 [a-z]+ agreed query=[a-z]+ {of}")
    assert agreed and all(shape.fullmatch(text) for text in agreed)
    files = [folder / "analyst" / "study" / "tables", *(tmp_path / "out").iterdir()]
    files += [folder / site / "memory" / "ledger.jsonl" for site in SITES]
    written = "".join(path.read_bytes().decode("latin-1") for path in files)
    for text in secrets(folder):
        assert text not in logged and text not in written


def plant(path):
    """Give one record a value that is its alone, and all a column that is not offered."""
    lines = path.read_text().splitlines()
    ident, _, sex = lines[1].split(",")
    lines[1] = f"{ident},43.98765,{sex}"
    path.write_text("\n".join([f"{lines[0]},note", *(f"{x},unoffered" for x in lines[1:])]) + "\n")


def secrets(folder):
    found = ["43.98765", "unoffered", *records()[0]]
    for party in (*SITES, "dealer", "analyst"):
        line = (folder / party / f"{party}.key").read_text().splitlines()[1]
        found += [line[:12], b64decode(line).hex()[:12], str(b64decode(line))[2:14]]
    return found


def test_logs_take_texts_and_numbers_only():
    assert line("a", "b", c=1, d="x y", e=("f", "g")) == 'a b c=1 d="x y" e=f,g'
    for thing in (b"secret", np.int64(3), KeyPair(bytes(32)), 1.5, None, ["x"]):
        with pytest.raises(TypeError, match="a logged fact must be"):
            line("a", "b", c=thing)
    assert "\n" not in line("a", "b", c="two\nlines")


# ---- who is who ----------------------------------------------------------------------------------

STRANGER = KeyPair.generate(SeededRandomness(b"stranger"))


def test_a_study_with_another_key_of_the_dealer_is_refused_naming_the_mismatch(
    capsys, folder, tmp_path
):
    changed_key(folder / "analyst" / "study.toml", "dealer", encode_public(STRANGER.public))
    reason = "north refuses: the study has another public key for 'dealer' than is pinned here"
    refused(capsys, folder, tmp_path / "out", reason)


def test_a_study_with_another_key_of_a_site_is_refused(capsys, folder, tmp_path):
    changed_key(folder / "analyst" / "study.toml", "south", encode_public(STRANGER.public))
    refused(
        capsys, folder, tmp_path / "out", "refuses: the study has another public key for 'south'"
    )


def test_sites_that_hold_other_people_stop_before_anything_is_masked(capsys, tmp_path, folder):
    ids, _ = records()
    people = {"south": [*ids[:-1], "somebody-else"]}
    rmtree(folder)
    deployment(folder, people=people)
    reason = (
        "the records are not the same at north and south, at south and east; they are the same at"
    )
    refused(capsys, folder, tmp_path / "out", reason)
    ledgers = [SiteFile.read(folder / s / "site.toml").ledger.read_text() for s in SITES]
    assert all("whether its records" in text and "states" not in text for text in ledgers)


def test_a_restarted_site_commits_no_other_column_under_a_label(capsys, folder, tmp_path):
    learn_study(capsys, folder, tmp_path / "first")
    path = folder / "east" / "records.csv"
    lines = path.read_text().splitlines()
    word = "ill" if lines[1].endswith(",well") else "well"
    lines[1] = lines[1].split(",")[0] + f",{word}"
    path.write_text("\n".join(lines) + "\n")
    refused(capsys, folder, tmp_path / "out", "'outcome' has changed since it was committed")


def test_a_party_whose_own_key_is_the_dealers_does_not_start(folder):
    own = read_private(folder / "north" / "north.key").public
    changed_key(folder / "north" / "site.toml", "dealer", encode_public(own))
    with pytest.raises(ValueError, match="one party"):
        with site_role(SiteFile.read(folder / "north" / "site.toml")):
            pass
