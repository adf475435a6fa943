"""`vertibayes ledger --record`: what a site answers a person who asks what it has released."""

import csv
import re
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.e2e.command import run
from tests.e2e.studies import learn_study, run_in_one_process
from tests.e2e.test_alignment import aligning
from tests.protocols.deployment.parties import SITES, change, deployment, pooled
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.ledger import RevealedTable
from vertibayes_protocols.release import Rule
from vertibayes_protocols.storage.alignments import KeptAlignment
from vertibayes_protocols.storage.ledger_entries import Tables, read_ledger
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Rows

ALONE, ORDINARY, ABSENT = "patient-00007", "patient-00008", "patient-99999"


def rows_of(folder):
    with (folder / "north" / "records.csv").open(newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def write_rows(folder, rows):
    with (folder / "north" / "records.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "age", "sex"])
        writer.writeheader()
        writer.writerows(rows.values())


def single_out(folder):
    """Have one person a state of a variable that nobody else has, and another an ordinary row."""
    rows = rows_of(folder)
    rows[ALONE] |= {"age": "55", "sex": "x"}
    rows[ORDINARY] |= {"age": "55", "sex": "f"}
    write_rows(folder, rows)
    return folder


def kept(folder, rule, tables):
    """Have a site keep its data and a ledger as after an approved study by a rule."""
    site = SiteFile.read(folder / "north" / "site.toml")
    data = read_data(site)
    site.folder.mkdir(mode=0o700)
    with closing(SiteMemory(site.memory)) as memory, closing(LedgerFile(site.ledger)) as ledger:
        values = memory.snapshot(data, data.variables, memory.digests(data))
        memory.keep_values(replace(values, rule=rule.name), data.variables.values())
        session = ledger.begin("ann", lambda: ("ab" * 32, "A. Owner"))
        session.open(RevealedTable(names, 9, "ann", rows, rule.words) for names, rows in tables)


def approve_all(capsys, folder, study):
    for site in SITES:
        own = ("--site", folder / site / "site.toml", "--yes", "--by", "A. Owner")
        assert run(capsys, "approve", study, *own)[0] == 0


def asked(capsys, place, *parts):
    code, text, error = run(capsys, "ledger", place, *(w for p in parts for w in ("--record", p)))
    return code, " ".join(text.split()), " ".join(error.split())


def groups(text):
    """Return how many others have the same values, by the columns of the site."""
    found = re.findall(r"- ([\w, ]+): (nobody else|[\d,]+ more) \((\d+) table", text)
    return {
        own: (0 if how == "nobody else" else int(how.split()[0]), int(n)) for own, how, n in found
    }


@pytest.fixture
def free(tmp_path, monkeypatch, capsys):
    run_in_one_process(monkeypatch, tmp_path / "all")
    folder = single_out(deployment(tmp_path / "all", free=True))
    assert learn_study(capsys, folder, tmp_path / "out", "--quiet")[0] == 0
    return folder


def counted_alike(data, ids, person, names):
    place = ids.index(person)
    return int(np.logical_and.reduce([data.codes[n] == data.codes[n][place] for n in names]).sum())


@pytest.mark.parametrize("person", [ALONE, ORDINARY])
def test_the_numbers_are_those_of_the_data_and_bound_each_released_cell(capsys, free, person):
    before = {path: path.read_bytes() for path in free.rglob("*") if path.is_file()}
    code, text, error = asked(capsys, free / "north", person)
    assert code == 0 and not error and "The study counts this record." in text
    data, everybody = read_data(SiteFile.read(free / "north" / "site.toml")), pooled(free)
    ids = [data.ids.texts[at] for at in data.ids.places]
    entries = read_ledger(free / "north" / "memory" / "ledger.jsonl").entries
    tables = [t for e in entries if isinstance(e.noted, Tables) for t in e.noted.tables]
    found = groups(text)
    assert sum(tables for _, tables in found.values()) == sum(
        bool({"age", "sex"} & {*table.variables}) for table in tables
    )
    for table in tables:
        if own := sorted({"age", "sex"} & {*table.variables}):
            others, _ = found[", ".join(own)]
            assert others + 1 == counted_alike(data, ids, person, own)
            cell = counted_alike(everybody, ids, person, table.variables)
            assert 1 <= cell <= others + 1
    alone = {own for own, (others, _) in found.items() if others == 0}
    assert alone == ({"age, sex", "sex"} if person == ALONE else set())
    assert ("have the record alone" in text) == (person == ALONE)
    assert ("no table has the record alone" in text) == (person == ORDINARY)
    assert before == {path: path.read_bytes() for path in free.rglob("*") if path.is_file()}


def test_an_analyst_between_machines_hears_at_least_how_many_are_alone(capsys, free, tmp_path):
    code, _, error = learn_study(capsys, free, tmp_path / "again")
    said = re.search(
        r"at least (\d+) of 300 records \([\d.]+%\) (is|are) alone in a revealed cell: "
        r'rule = "cut" in \[release\] releases such counts as 0',
        " ".join(error.split()),
    )
    assert code == 0 and said and int(said[1]) >= 1, error


def test_by_its_file_and_its_memory_a_site_says_the_same(capsys, free):
    texts = {asked(capsys, free / place, ALONE)[1]
             for place in ("north", "north/memory", "north/site.toml")}  # fmt: skip
    assert len(texts) == 1 and "sex = x" in texts.pop()


def test_data_that_changed_since_leave_the_numbers_and_are_said(capsys, free):
    numbers = groups(asked(capsys, free / "north", ORDINARY)[1])
    rows = rows_of(free)
    rows[ORDINARY]["age"] = "20"
    del rows[ALONE]
    write_rows(free, rows)
    code, text, _ = asked(capsys, free / "north", ORDINARY)
    assert code == 0 and groups(text) == numbers and "age = from_50_to_70" in text
    assert "The data have changed since (people who left 1, age 1)" in text
    assert "The record itself has changed: today age is le_30." in text, text
    code, text, _ = asked(capsys, free / "north", ALONE)
    assert code == 0 and "The record is not in the data today." in text
    assert groups(text)["sex"][0] == 0 and "sex = x" in text


def test_who_cannot_ask(capsys, free, tmp_path):
    code, text, error = asked(capsys, free / "north", ABSENT)
    assert code == 2 and not text and "no record has this id" in error and ABSENT not in error
    code, text, error = asked(capsys, free / "north", ALONE, "1950")
    assert code == 2 and "one value per column of id_column (id): 2 given" in error
    code, text, error = asked(capsys, tmp_path / "out", ALONE)
    assert code == 2 and "--record asks a site" in error
    code, text, error = run(capsys, "ledger", free / "north", "--record", ALONE, "--html", "x.html")
    assert code == 2 and "--record" in error
    (free / "north" / "records.csv").rename(tmp_path / "elsewhere.csv")
    code, text, error = asked(capsys, free / "north", ALONE)
    assert code == 2 and not text and "records.csv" in error
    (free / "north" / "site.toml").unlink()
    code, text, error = asked(capsys, free / "north", ALONE)
    assert code == 2 and not text and "no site.toml beside the ledger" in error
    code, text, error = asked(capsys, free / "south", ALONE, "--all")
    (free / "south" / "memory" / "ledger.jsonl").unlink()
    code, text, error = asked(capsys, free / "south", ALONE)
    assert code == 2 and "no ledger" in error


def test_each_study_is_answered_from_the_data_that_answered_it(capsys, free, tmp_path):
    rows = rows_of(free)
    for number, row in enumerate(rows.values()):
        if row["sex"] != "x":
            row["age"], row["sex"] = str(20 + number % 60), "fm"[number % 2]
    write_rows(free, rows)
    change(free / "analyst" / "study.toml", 'folder = "study"', 'folder = "study2"')
    assert learn_study(capsys, free, tmp_path / "out2", "--quiet")[0] == 0
    _, text, _ = run(capsys, "ledger", free / "north", "--record", ORDINARY)
    newer, older = text.split("Study of free queries")[1:]
    today = rows[ORDINARY]
    assert f"sex = {today['sex']}" in newer and "have changed" not in newer
    assert "sex = f" in older and "have changed since" in " ".join(older.split())
    for part, sex in ((newer, today["sex"]), (older, "f")):
        assert groups(" ".join(part.split()))["sex"][0] > 100, sex


def test_an_approved_study_by_the_rule_cut(capsys, tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    folder = deployment(tmp_path / "all", free=False)
    approve_all(capsys, folder, folder / "analyst" / "study.toml")
    code, _, error = learn_study(capsys, folder, tmp_path / "out", "--quiet")
    assert code == 0, error
    code, text, _ = asked(capsys, folder / "north", ORDINARY)
    assert code == 0 and "Approved by A. Owner" in text and "counts below 10 as 0" in text
    assert "The study counts this record." in text and "no table of these fewer than 10" in text
    data = read_data(SiteFile.read(folder / "north" / "site.toml"))
    ids = [data.ids.texts[at] for at in data.ids.places]
    for own, (others, _) in groups(text).items():
        assert others + 1 == counted_alike(data, ids, ORDINARY, own.split(", "))


def test_identifiers_of_several_columns_and_persons_of_several_rows(capsys, tmp_path):
    folder = deployment(tmp_path / "all")
    path = folder / "north" / "site.toml"
    change(path, 'id_column = "id"', 'id_column = ["id", "born"]')
    change(path, "age = { cut = [30, 50, 70] }", 'age = { cut = [30, 50, 70], aggregate = "max" }')
    with (folder / "north" / "records.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "born", "age", "sex"])
        for number in range(40):
            row = [number // 2, 1950 + number % 2, 40 + number % 4 * 10, "fm"[number % 2]]
            writer.writerows([row, [*row[:2], 20, row[3]]])
    kept(folder, Rule("exact"), [(("age", "sex"), Rows())])
    code, text, error = asked(capsys, folder / "north", "3", "1951")
    assert code == 0 and "sex = m" in text and "age, sex: 9 more (1 table" in text, (text, error)
    assert asked(capsys, folder / "north", "3")[0] == 2
    assert asked(capsys, folder / "north", "31", "951")[0] == 2


@pytest.mark.parametrize(
    ("rule", "said"),
    [(Rule("exact"), "The counts are exact, and 2 tables have the record alone"),
     (Rule("cut", fewest=5), "In 2 tables of these fewer than 5 people here"),
     (Rule("rounded", fewest=10), "In 2 tables of these fewer than 3 people here"),
     (Rule("laplace", epsilon=0.5), "The counts have noise. As far as its promise holds"),
     (Rule("gaussian", epsilon=0.5, dishonest=0.5), "The counts have noise. As far as")],
)  # fmt: skip
def test_what_can_be_concluded_depends_on_the_rule(capsys, tmp_path, rule, said):
    folder = single_out(deployment(tmp_path / "all"))
    part = Rows(1, 0, 100)
    tables = [("sex",), ("drug", "sex"), ("age", "drug"), ("drug",), ("sex", "age")]
    kept(folder, rule, [(names, part if names[0] == "sex" and names[1:] else Rows())
                        for names in tables])  # fmt: skip
    code, text, error = asked(capsys, folder / "north", ALONE)
    assert code == 0 and said in text, (text, error)
    if rule.kind in ("exact", "cut", "rounded"):  # of the site's own people alone
        assert re.search("other sites? adds? people of (its|their) own", text), text
    assert "sex: nobody else (2 tables, with no other column; drug)" in text
    assert "1 table with columns of other sites alone" in text
    assert "1 table of a part of the records: this one or not" in text


def test_people_who_were_not_matched_are_in_no_table(capsys, tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    folder = aligning(tmp_path / "all", free=True)
    assert learn_study(capsys, folder, tmp_path / "out", "--quiet")[0] == 0
    lists = []
    for site in SITES:
        data = read_data(SiteFile.read(folder / site / "site.toml"))
        lists.append(set(data.identifiers.forms))
    north = read_data(SiteFile.read(folder / "north" / "site.toml"))
    both = set.intersection(*lists)
    answers = {True: 0, False: 0}
    for form, record in list(zip(north.identifiers.forms, north.identifiers.records, strict=True))[
        :40
    ]:
        text = north.ids.texts[north.ids.places[record]]
        code, told, error = asked(capsys, folder / "north", f"00{text}")
        assert code == 0, error
        assert ("The study counts this record." in told) == (form in both)
        assert ("None counts this record" in told) == (form not in both)
        answers[form in both] += 1
    assert all(answers.values())


def test_of_two_aligned_studies_each_has_its_own_people(capsys, tmp_path):
    site = SiteFile.read(deployment(tmp_path / "all") / "north" / "site.toml")
    data = read_data(site)
    ids = [data.ids.texts[at] for at in data.ids.places]
    site.folder.mkdir(mode=0o700)
    with closing(SiteMemory(site.memory)) as memory, closing(LedgerFile(site.ledger)) as ledger:
        for study, size in ((b"one", 200), (b"two", 120)):
            places = np.where(np.arange(len(ids)) < size, np.arange(len(ids)), -1)
            memory.aligned.keep(study, KeptAlignment(b"", b"", size, {"places": places}))
            people = data.rows(np.arange(size))
            values = memory.snapshot(people, data.variables, memory.digests(data)[:size])
            memory.keep_values(values, data.variables.values())
            session = ledger.begin("ann", lambda study=study: (study.hex(), ""))
            session.open([RevealedTable(("sex",), 2, "ann", Rows())])
    for person, counted in ((ids[10], 2), (ids[150], 1), (ids[250], 0)):
        code, text, error = asked(capsys, site.source.path.parent, person)
        assert code == 0 and text.count("The study counts this record.") == counted, (text, error)
        assert text.count("None counts this record") == 2 - counted


def test_if_no_site_knows_who_is_in_a_study_the_answer_says_so(capsys, tmp_path, monkeypatch):
    run_in_one_process(monkeypatch, tmp_path / "all")
    folder = aligning(tmp_path / "all", free=True)
    change(folder / "analyst" / "study.toml", 'rules = ["digits"]', 'rules = ["digits"]\nlevel = 2')
    assert learn_study(capsys, folder, tmp_path / "out", "--quiet")[0] == 0
    for person in list(rows_of(folder))[:3]:
        code, text, _ = asked(capsys, folder / "north", person)
        assert code == 0 and "This site cannot know whether the study counts this record." in text
