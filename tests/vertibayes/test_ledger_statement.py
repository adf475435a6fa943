"""`vertibayes ledger` and `vertibayes meets`: what an officer and an owner read."""

import json
import re
from contextlib import closing
from html.parser import HTMLParser
from itertools import combinations

import pytest

from tests.e2e.command import run
from tests.protocols.deployment.parties import deployment
from tests.protocols.small import costing
from tests.protocols.test_contract import CONTRACT
from vertibayes.cli.ledger import read_statement
from vertibayes.report.ledger.statement import merged
from vertibayes_protocols.budget import Cost, Released
from vertibayes_protocols.effects import ByRule, Noise
from vertibayes_protocols.ledger import Fact, Ledger, RevealedTable
from vertibayes_protocols.storage.ledger_file import LedgerFile
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Rows

STUDY = CONTRACT.digest.hex()
GROUPED = " ".join(STUDY[at : at + 4] for at in range(0, 64, 4))
TABLES = [RevealedTable((f"v{a}", f"v{b}"), 9, "analyst", Rows(), "cut below 10")
          for a, b in combinations(range(6), 2)]  # fmt: skip


@pytest.fixture
def site(tmp_path):
    """The files of a site that has released tables and refused queries; its ledger is open."""
    folder = deployment(tmp_path / "all") / "north"
    (folder / "memory").mkdir(mode=0o700, exist_ok=True)
    with closing(SiteMemory(folder / "memory" / "memory")) as memory:
        memory.apply(costing(leaves=ByRule(Released(15, 135), Noise(Cost.of(0.25, 0.0), ""), None)))
        memory.meets.ask("south")
        with closing(LedgerFile(folder / "memory" / "ledger.jsonl")) as ledger:
            session = ledger.begin("ann", lambda: (STUDY, "A. Owner on 2026-11-01"))
            session.open(TABLES)
            session.refuse("tables", "it does not show <b>income</b>", "detail for the owner")
            session.end()
            ledger.begin("bob", lambda: ("", ""))
            yield folder


def test_a_site_reads_what_left_to_whom_and_why_not_while_it_runs(site, capsys):
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    code, text, error = run(capsys, "ledger", site)
    assert code == 0 and not error
    for part in (
        f"\nStudy {GROUPED}\n  Analyst ann. Approved by A. Owner on 2026-11-01.",
        "RELEASED  to analyst: 15 tables with 135 cells: cut below 10.",
        "- v0, v1: 9 cells",
        "- and 5 more: --all lists them",
        "REFUSED   Query 'tables': it does not show <b>income</b>.",
        "- For the owner: detail for the owner",
        "tables of approved studies 15 985 most_released_tables = 1,000",
        "epsilon of all releases with noise 0.25 0.75 most_epsilon = 1",
        "failed meets with south (0 different, 1 unanswered) 1 99 most_failed_meets = 100",
        f"{GROUPED[:19]} ann A. Owner on 2026-11-01",
    ):
        assert part in text or part in " ".join(text.split()), part
    assert text.index("Study ") < text.index("Sessions of bob"), "those without a study at the end"
    assert before == {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    _, everything, _ = run(capsys, "ledger", site / "memory", "--all")
    assert all(f"- {', '.join(t.variables)}: 9 cells" in everything for t in TABLES)


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_has_all_of_it_and_loads_nothing(site, capsys, tmp_path):
    code, text, _ = run(capsys, "ledger", site, "--html", tmp_path / "page.html")
    assert code == 0 and text == f"{tmp_path}/page.html\n"
    content = (tmp_path / "page.html").read_text()
    page = Page()
    page.feed(content)
    assert not page.open and not {"script", "link", "img", "b"} & {tag for tag, _ in page.tags}
    assert "&lt;b&gt;income" in content and not re.search(r"(src|href)=", content)
    assert all(", ".join(table.variables) in content for table in TABLES)
    assert "<strong>15</strong>tables released, with 135 cells" in content
    assert "<strong>0.75</strong>epsilon left of 1" in content
    assert not re.search(r"[0-9a-f]{17}", content), "no digest without groups"


def test_sessions_that_ended_as_they_should_are_counted_and_not_listed(site, capsys):
    with closing(LedgerFile(site / "memory" / "ledger.jsonl")) as ledger:
        for reason in ("", "south is not reachable"):
            session = ledger.begin("eve", lambda: ("", ""))
            session.refuse("meet", "no")
            session.refuse("meet", "no")
            session.end(reason)
        ledger.begin("eve", lambda: ("", "")).end()
    _, text, _ = run(capsys, "ledger", site)
    lines = text[text.index("Sessions of eve") :].splitlines()[1:]
    assert lines[0] == "  3 sessions began."
    ended = [line.partition("SESSION")[2].strip() for line in lines if "SESSION" in line][:2]
    assert ended[0].startswith("The session ended: south is not reachable. 2 queries were refused;")
    assert ended[1].startswith("The session ended. 2 queries were refused; each reason is listed")
    assert " ".join(text.split()).count("each reason is listed once.") == 2  # lines are wrapped


def test_an_analyst_reads_the_ledger_of_a_run(tmp_path, capsys):
    ledger = Ledger()
    ledger.open(TABLES)
    for site in ("a", "b"):
        ledger.note("winners", site, ("analyst", *({"a", "b"} - {site})))
    (tmp_path / "ledger.json").write_text(json.dumps(ledger.as_json()))
    summary = {"written": "2026-11-02", "study": {"contract": STUDY, "id": "00"}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    code, text, _ = run(capsys, "ledger", tmp_path)
    assert code == 0 and f"Study {GROUPED}\n  Written 2026-11-02 UTC." in text
    assert "RELEASED  to analyst: 15 tables with 135 cells: cut below 10." in text
    assert "REVEALED  to analyst, each other: Winners (about a, b)." in text


def test_a_ledger_that_is_being_written_is_read_to_its_last_whole_line(site):
    with (site / "memory" / "ledger.jsonl").open("ab") as file:
        file.write(b'{"at": "20')
    statement = read_statement(site)
    assert "The last 10 bytes of the file" in statement.notes[1]
    assert (site / "memory" / "ledger.jsonl").read_bytes().endswith(b'{"at": "20')


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "no ledger; specify a folder with"), ("{}", "not a valid ledger"),
     ('{"format": 9}', "written by a newer release"), ("[1]", "not a valid ledger")],
)  # fmt: skip
def test_a_folder_without_a_readable_ledger_is_named(tmp_path, capsys, content, reason):
    if content is not None:
        (tmp_path / "ledger.json").write_text(content)
    code, text, error = run(capsys, "ledger", tmp_path)
    assert code == 2 and not text and str(tmp_path) in error and reason in error


def test_facts_that_differ_by_the_site_alone_are_one_line():
    """Before: one line per site for the same choice."""
    sites = "a", "b", "c"
    facts = [Fact("w", s, ("analyst", *(o for o in sites if o != s))) for s in sites]
    assert list(merged(facts)) == [Fact("w", "a, b, c", ("analyst", "each other"))]
    other = [Fact("w", "a", ("b",)), Fact("w", "b", ("c",))]
    assert list(merged(other)) == other
    assert list(merged([Fact("w", "a", ("b",)), Fact("w", "a", ("c",))])) == [
        Fact("w", "a", ("b", "c"))
    ]


def test_an_owner_lists_comparisons_and_forgives_them(site, capsys):
    file = site / "site.toml"
    code, text, _ = run(capsys, "meets", file)
    line = "south: 0 found different lists, 1 were not answered, 99 more may fail"
    assert code == 0 and line in text.splitlines()
    code, text, _ = run(capsys, "meets", file, "--reset", "south")
    assert code == 0 and text.startswith("Forgiven: all comparisons with south")
    _, text, _ = run(capsys, "meets", file)
    assert f"{line}; forgiven from the next one on" in text.splitlines()
    code, _, error = run(capsys, "meets", file, "--reset", "zoe")
    assert code == 2 and "--reset must be a site that" in error and "got 'zoe'" in error
