"""Sites whose lists of people differ: from their files to the model, at the command line."""

import csv
import json
from shutil import rmtree

import numpy as np
import pytest

from tests.e2e.command import learn, rows_of, run, write
from tests.e2e.studies import learn_study, refused, run_in_one_process
from tests.paillier_worlds import small_keys
from tests.protocols.deployment.parties import (
    COLUMNS,
    SITES,
    change,
    count_by,
    deployment,
    records,
    write_csv,
)
from vertibayes.counting import PlainCounter
from vertibayes.learning import learn as learn_pooled
from vertibayes.options import Options
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.site.data import SiteData

SIZES = {"north": 270, "south": 260, "east": 280}


def write_lists(folder):
    """Give each site a list of its own, and its own way to write the numbers of people."""
    ids, texts = records()
    for number, site in enumerate(SITES):
        held = np.random.default_rng(number).permutation(len(ids))[: SIZES[site]]
        names = [f"{'0' * number}{int(ids[at].removeprefix('patient-')) + 1}" for at in held]
        own = {name: texts[name][held] for name in COLUMNS[site]}
        write_csv(folder / site / "records.csv", names, own, COLUMNS[site])


def common(folder):
    """Return the records of the people whom all sites hold: what nobody has."""
    sites = [read_data(SiteFile.read(folder / site / "site.toml")) for site in SITES]
    places = [
        dict(zip(data.identifiers.forms, data.identifiers.records, strict=True)) for data in sites
    ]
    people = sorted(set.intersection(*map(set, places)))
    rows = [
        data.rows(np.array([at[person] for person in people]))
        for data, at in zip(sites, places, strict=True)
    ]
    variables = {name: v for data in rows for name, v in data.variables.items()}
    return SiteData(variables, {name: c for data in rows for name, c in data.codes.items()})


def aligning(folder, *, free):
    deployment(folder, free=free)
    write_lists(folder)
    for site in SITES:
        change(folder / site / "site.toml", "# [alignment] ", "[alignment] ")
        change(folder / site / "site.toml", '# rules = ["exact"]', 'rules = ["digits"]')
    study = folder / "analyst" / "study.toml"
    change(study, "# [alignment] ", "[alignment] ")
    change(study, '# rules = ["exact"]', 'rules = ["digits"]')
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    return aligning(tmp_path / "all", free=True)


@pytest.fixture
def approved(tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    folder = aligning(tmp_path / "all", free=False)
    sizes = "sizes = { north = 270, south = 260, east = 300 } #"
    change(folder / "analyst" / "study.toml", "# sizes = ", sizes)
    return folder


def test_a_study_learns_from_the_people_whom_all_sites_hold(capsys, folder, tmp_path):
    code, output, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0, error
    people = common(folder)
    assert f"{people.records} people in the study; {people.records} in all lists, " in output
    plain = learn_pooled(PlainCounter(people), Options(max_parents=3))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["scores"] == plain.scores.as_json()
    assert summary["alignment"]["people"] == people.records
    lists = {tuple(each["sites"]): each["people"] for each in summary["alignment"]["lists"]}
    for site in SITES:
        assert sum(n for sites, n in lists.items() if site in sites) == SIZES[site]
    revealed = (tmp_path / "out" / "ledger.json").read_text()
    assert f"{people.records} people in these lists and no others" in revealed
    ledger = (folder / "north" / "memory" / "ledger.jsonl").read_text()
    assert f"{people.records} of 270 people here are in the study, which has" in ledger
    code, output, error = learn_study(capsys, folder, tmp_path / "again")
    assert code == 0 and "the people were aligned in an earlier session of this study" in output
    for file in ("model.bif", "structure.json"):
        assert (tmp_path / "out" / file).read_text() == (tmp_path / "again" / file).read_text()


def test_a_study_learns_from_people_whom_no_site_knows(capsys, folder, tmp_path):
    change(folder / "analyst" / "study.toml", 'rules = ["digits"]', 'rules = ["digits"]\nlevel = 2')
    for out in ("out", "again"):
        code, output, error = learn_study(capsys, folder, tmp_path / out)
        assert code == 0, error
    assert "the people were aligned in an earlier session of this study" in output
    people = common(folder)
    plain = learn_pooled(PlainCounter(people), Options(max_parents=3))
    for out in ("out", "again"):
        summary = json.loads((tmp_path / out / "summary.json").read_text())
        assert summary["scores"] == plain.scores.as_json()
    ledger = (folder / "north" / "memory" / "ledger.jsonl").read_text()
    assert "how many of their people are in the study" in ledger
    assert "people here are in the study" not in ledger


def test_aligned_people_are_counted_by_paillier_without_a_dealer(capsys, folder, tmp_path):
    rmtree(folder / "dealer")
    count_by(folder, "paillier")
    with small_keys():
        code, _, error = learn_study(capsys, folder, tmp_path / "out")
    assert code == 0, error
    plain = learn_pooled(PlainCounter(common(folder)), Options(max_parents=3))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["scores"] == plain.scores.as_json() and summary["count_by"] == "paillier"


def test_an_approved_study_with_an_alignment(capsys, approved, tmp_path):
    study = approved / "analyst" / "study.toml"
    for site in SITES:
        own = approved / site / "site.toml"
        code, shown, error = run(capsys, "approve", study, "--site", own, "--yes")
        assert code == 0, error
    for words in (
        "The lists of people are matched, level 1, by the rules digits:",
        "- public sizes of the lists: this site 300; north 270, south 260",
        "- the study has the people who are in all lists of north, south, east: at least 10 people",
        "- each site learns which of its own people are in the study",
        "  whoever puts names into the list of north or south learns which of them are in the",
        "- analyst learns how many people are in which of the lists, and not who",
    ):
        assert words in shown
    code, output, error = run(capsys, "check", study, "--meet")
    assert code == 0 and "the lists of people are not compared: a run aligns them" in output
    code, output, error = learn_study(capsys, approved, tmp_path / "out")
    assert code == 0, error
    assert f"{common(approved).records} people in the study" in output


def test_a_list_that_changes_between_runs_is_refused_at_its_site(capsys, folder, tmp_path):
    assert learn_study(capsys, folder, tmp_path / "out")[0] == 0
    path = folder / "south" / "records.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    reason = "south refuses: the list of people changed since the study was aligned"
    refused(capsys, folder, tmp_path / "again", reason)


def test_a_column_that_vanished_is_refused(capsys, folder, tmp_path):
    assert learn_study(capsys, folder, tmp_path / "out")[0] == 0
    path = folder / "south" / "records.csv"
    path.write_text(path.read_text().replace("pulse", "pulses", 1))
    code, _, error = learn_study(capsys, folder, tmp_path / "again")
    assert code == 2 and "no column pulse ([variables])" in error


def test_check_compares_rules_and_limits_before_a_run(capsys, approved):
    study, own = approved / "analyst" / "study.toml", approved / "east" / "site.toml"
    code, output, _ = run(capsys, "check", study, own)
    assert code == 0 and "280 people can be aligned with other sites, by the rules digits" in output
    for old, new, reason in (
        ('rules = ["digits"]', 'rules = ["text"]', "the rules must be equal"),
        ("# least_level = 1", "least_level = 2", "has least_level = 2"),
        ("# most_people = { b = 10_000 }", "most_people = { south = 99 }", "allows at most 99"),
        ("# most_people = { b = 10_000 }", "most_people = { east = 99 }", "allows at most 99"),
        ("fewest_records = 10 ", "fewest_records = 11 ", "has fewest_records = 11"),
    ):
        text = own.read_text()
        change(own, old, new)
        code, output, _ = run(capsys, "check", study, own)
        assert code == 2 and reason in output, output
        code, _, error = run(capsys, "approve", study, "--site", own, "--yes")
        assert code == 2 and reason in error and "study.toml, line" in error
        own.write_text(text)


@pytest.mark.parametrize(
    ("party", "old", "new", "reason"),
    [
        ("north", 'rules = ["digits"]', 'rules = ["date"]', "rules: 'date' is not a rule"),
        ("north", 'rules = ["digits"]', "rules = []", ""),
        ("north", 'rules = ["digits"]', 'rules = ["text", "text"]', "each column of id_column"),
        ("north", "# most_people = { b", "most_people = { b", "'b' is not a site that this file"),
        ("north", "# most_people = { b", "most_people = { south = 0, b", "a number above 0"),
        ("north", 'id_column = "id"', 'id_column = ["id", "nr"]', "each column of id_column needs"),
        ("analyst", 'rules = ["digits"]', 'rules = ["date:%d.%m"]', "must have %Y, %m and %d"),
        ("analyst", "# fewest = 10 ", "fewest = 0 ", "alignment.fewest: must be a whole number"),
        ("analyst", "max_parents = 3", 'learner = "calibration"', "a person at two sites twice"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_used_is_refused_with_its_line(
    capsys, folder, party, old, new, reason
):
    path = next((folder / party).glob("*.toml"))
    change(path, old, new)
    code, output, _ = run(capsys, "check", path)
    if reason:
        assert code == 2 and reason in output and f"{path.name}, line" in output, output
    else:
        assert code == 0


def test_an_approved_study_needs_the_public_sizes(capsys, approved):
    study = approved / "analyst" / "study.toml"
    change(study, "sizes = { north = 270, south = 260, east = 300 }", "sizes = { north = 270 }")
    code, output, _ = run(capsys, "check", study)
    assert code == 2 and "sizes has no number of people of south, east" in output
    change(study, "sizes = { north = 270 }", "sizes = { nord = 270 }")
    code, output, _ = run(capsys, "check", study)
    assert code == 2 and "sizes names nord, which is not a site of the study: north, so" in output


def test_check_names_two_sites_of_different_people_that_must_hold_everybody(capsys, approved):
    study, south = approved / "analyst" / "study.toml", approved / "south" / "site.toml"
    change(south, "\n[variables]", '\n[variables]\n"age" = {}')
    table = south.parent / "records.csv"
    rows = [f"{row},{n % 3}" for n, row in enumerate(table.read_text().splitlines())]
    table.write_text("\n".join([rows[0][:-1] + "age", *rows[1:]]) + "\n")
    files = study, south, approved / "north" / "site.toml"
    code, output, _ = run(capsys, "check", *files)
    assert (
        code == 2 and "alignment.everyone: south and north both offer age, so they must" in output
    ), output
    change(study, "# everyone = ", 'everyone = ["north", "east"] # ')
    code, output, _ = run(capsys, "check", *files)
    assert "alignment.everyone" not in output


def test_the_owner_sees_and_allows_alignments(capsys, folder, tmp_path):
    assert learn_study(capsys, folder, tmp_path / "out")[0] == 0
    own = folder / "north" / "site.toml"
    code, output, _ = run(capsys, "meets", own)
    assert code == 0 and "alignments: 1 began, 2 more may\n" in output
    code, output, _ = run(capsys, "meets", own, "--alignments")
    assert code == 0 and "the alignments so far do not count" in output
    code, output, _ = run(capsys, "meets", own)
    assert "alignments: 1 began, 2 more may; the next one is not refused" in output
    code, output, _ = run(capsys, "ledger", folder / "north")
    assert code == 0 and "all alignments" not in output
    assert "alignments of the list of people 1 2 most_al" in " ".join(output.split())


# ---- in one process ------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """Two files of different people: one has zeros before their numbers, and a birth date."""
    draw = np.random.default_rng(0)
    values = draw.integers(0, 2, (60, 2))
    for site, people, written in (("a", range(1, 51), "{:03d}"), ("b", range(11, 61), "{}")):
        with (tmp_path / f"{site}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "born", *(f"{site}{place}" for place in (1, 2))])
            for person in people:
                date = f"{person % 28 + 1}.5.1990"
                rows.writerow([written.format(person), date, *values[person - 1]])
    return ["--data", f"a={tmp_path / 'a.csv'}", "--data", f"b={tmp_path / 'b.csv'}"]


def test_learn_aligns_files_in_one_process(capsys, files, tmp_path):
    given = ["--id-column", "id", "--exclude", "born", "--align", "digits"]
    code, output, error = learn(capsys, tmp_path / "out", *files, *given)
    assert code == 0, error
    assert "40 people in the study; 40 in all lists, 10 at a alone" in output
    assert ", how many people are in which lists, and nothing else of the records\n" in output
    given = ["--id-column", "id,born", "--align", "digits,date:%d.%m.%Y", "--release", "cut"]
    code, output, error = learn(capsys, tmp_path / "both", *files, *given)
    assert code == 0 and "40 people in the study" in output, error


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--align", "exact"], "the column 'id' has leading zeros, which the rule exact"),
        (["--align", "soundex"], "--align soundex: 'soundex' is not a rule of identifiers"),
        (["--align", "digits,text"], "each column of the identifier needs a rule"),
        ([], "as --align exact or --align digits, the study is of the people whom all sites hold"),
    ],
)  # fmt: skip
def test_learn_says_why_files_do_not_match(capsys, files, tmp_path, options, reason):
    given = ["--id-column", "id", "--exclude", "born", *options]
    code, output, error = learn(capsys, tmp_path / "out", *files, *given)
    assert code == 2 and not output and not (tmp_path / "out").exists()
    assert reason in error


def test_learn_names_two_records_of_one_person_and_what_to_do(capsys, files, tmp_path):
    with (tmp_path / "b.csv").open("a", newline="") as file:
        csv.writer(file).writerow(["012", "1.5.1990", 0, 0])
    given = ["--id-column", "id", "--exclude", "born", "--align", "digits"]
    code, _, error = learn(capsys, tmp_path / "out", *files, *given)
    assert code == 2 and "records 2 and 51 have the same" in error
    assert error.endswith("normal form: correct one of them\n")


@pytest.mark.laws
def test_alarm_from_files_that_overlap_in_part(capsys, alarm_data, tmp_path):
    draw = np.random.default_rng(4)
    names, people = list(alarm_data.variables), draw.permutation(alarm_data.records)
    texts = rows_of(alarm_data)
    held, given = [], []
    for place, site in enumerate("abc"):
        held.append(draw.permutation(people)[:1800])
        columns = range(place, len(names), 3)
        rows = [[f" P-{at + 1:0{4 + place}d}", *(texts[at][c] for c in columns)] for at in held[-1]]
        write(tmp_path / f"{site}.csv", ["id", *(names[c] for c in columns)], rows)
        given += ["--data", f"{site}={tmp_path / site}.csv"]
    given += ["--id-column", "id", "--align", "digits", "--algorithm", "chow_liu", "--quiet"]
    code, _, error = learn(capsys, tmp_path / "out", *given)
    assert code == 0, error
    common = sorted(set.intersection(*map(set, held)))
    order = [name for site in range(3) for name in names[site::3]]
    write(tmp_path / "all.csv", order, [
        [texts[at][names.index(name)] for name in order] for at in common
    ])  # fmt: skip
    pooled = ["--data", tmp_path / "all.csv", "--sites", 1, "--algorithm", "chow_liu", "--quiet"]
    code, _, error = learn(capsys, tmp_path / "pooled", *pooled)
    assert code == 0, error
    for file in ("model.bif", "structure.json"):
        one, other = (tmp_path / out / file for out in ("out", "pooled"))
        assert one.read_text() == other.read_text()
