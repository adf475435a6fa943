"""The texts of the project have none of the worst habits of wording (`tests/wording.py`)."""

from __future__ import annotations

import pytest

from tests.wording import PLACES, files, findings

PLANTED_PAGE = """# A page

A number is
wanted. Else, the run ends. `The miner is told` is code.

```
lacking
```

The analyst [opened tables](told.md), which were opened anew.

An aim is no fact.

## 0.0.1

The released history climbs.
"""
PLANTED_MODULE = '''"""Say what
is lacking."""

told = {"miner": "climb"}
# The site but
# for one
limit = f"{told} bytes a record, one call a parent"  # an own comment
'''
LEGITIMATE = """Nothing but formats; withstood; NVFlare; untold; gapped; someone else, reclaimed.
There is no key. It is no longer valid. The aggregator opens a connection to both sites.
Hill climbing. It's a party. The site calls a record by its name, and takes 3 ms per record."""


@pytest.mark.parametrize("place", PLACES)
def test_texts_have_plain_words(place):
    read = files(place)
    assert read, f"no file of {place} was read"
    lines = [str(finding) for path in read for finding in findings(path)]
    assert not lines, f"{len(lines)} habits of wording:\n" + "\n".join(lines)


def planted(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return [(finding.line, finding.words) for finding in findings(path)]


def test_the_checker_finds_planted_habits_in_a_page(tmp_path):
    assert planted(tmp_path, "page.md", PLANTED_PAGE) == [
        (3, "is wanted"),
        (4, "Else,"),
        (10, "anew"),
        (10, "opened tables"),
        (12, "aim"),
    ]


def test_the_checker_finds_planted_habits_in_a_module(tmp_path):
    assert planted(tmp_path, "module.py", PLANTED_MODULE) == [
        (2, "lacking"),
        (5, "but for"),
        (7, "bytes a record"),
        (7, "one call a parent"),
    ]


def test_the_checker_passes_over_legitimate_words(tmp_path):
    assert planted(tmp_path, "page.md", LEGITIMATE) == []


def test_a_finding_names_the_place_the_words_and_the_plain_form(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("The column is\n\nlacking.")
    assert [str(finding) for finding in findings(page)] == [f"{page}:3: 'lacking'; write: missing"]
