"""The scripts of the site: what becomes of links to sources, and what the check of a site finds."""

from __future__ import annotations

import pytest

from tests.documents import ROOT, scripts

SITE = ROOT / "docs" / "site"
PAGE = """<link rel="stylesheet" href="a.css"><link rel="canonical" href="https://example.org/">
<h1 id="top">A page</h1><a href="b.html#there">b</a><a href="#top">up</a>
<a href="https://example.org/">elsewhere</a>"""


@pytest.fixture
def programs():
    """The check of a site, and the program that writes its pages."""
    with scripts(SITE, "check", "pages") as modules:
        yield modules


@pytest.fixture
def site(tmp_path):
    (tmp_path / "a.css").write_text("")
    (tmp_path / "a.html").write_text(PAGE)
    (tmp_path / "b.html").write_text('<p id="there">b</p>')
    return tmp_path


def test_a_site_of_its_own_files_passes(programs, site, capsys):
    check, _ = programs
    check.main(site)
    assert "2 pages" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('href="a.css"', 'href="https://example.org/a.css"', "loads https://example.org/a.css"),
        ('href="a.css"', 'href="//example.org/a.css"', "from outside"),
        ('href="a.css"', 'href="c.css"', "loads c.css, which does not exist"),
        ("<h1", '<script src="https://example.org/x.js"></script><h1', "from outside"),
        ("b.html#there", "b.html#nowhere", "links to b.html#nowhere"),
        ("b.html#there", "c.html", "links to c.html"),
        ("#top", "#bottom", "links to #bottom"),
    ],
)
def test_a_file_of_another_host_and_a_broken_link_end_the_check(
    programs, site, before, after, complaint
):
    check, _ = programs
    (site / "a.html").write_text(PAGE.replace(before, after))
    with pytest.raises(SystemExit, match=complaint):
        check.main(site)


def test_pages_keep_their_folders_and_links_to_sources_lead_to_pages(programs, tmp_path):
    _, pages = programs
    pages.main(tmp_path)
    assert "](docs/data.md)" in (tmp_path / "README.md").read_text()
    page = (tmp_path / "docs" / "python.md").read_text()
    assert "](sklearn.md)" in page and "](<../examples/own_learner.py.md>)" in page
    source = (ROOT / "examples" / "own_learner.py").read_text()
    assert source in (tmp_path / "examples" / "own_learner.py.md").read_text()
    assert (tmp_path / "docs" / "figures" / "messages" / "paillier.svg").is_file()
    shown = (tmp_path / "docs" / "reference" / "vertibayes.md").read_text()
    assert "::: vertibayes.parameters.cpt.fit_cpts\n" in shown
