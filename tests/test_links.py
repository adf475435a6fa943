"""Links, paths, names and options in the documents exist. Nothing here asks the network."""

from __future__ import annotations

import importlib
import re
from functools import cache
from urllib.parse import unquote, urlsplit

import pytest
import typer

from tests.documents import (
    CODE,
    FOLDERS,
    PACKAGES,
    ROOT,
    WRITTEN_BY_READERS,
    anchors,
    code_of,
    commands,
    links,
    pages,
    prose,
    slug,
    text_of,
)
from vertibayes.cli.app import app

TOP = {*FOLDERS, "tests", "deploy", ".ci"}
URL = re.compile(r"https?://[^\s)>\"'`|,]+")
DOI = re.compile(r"(?:doi\.org/|doi:\s*)(\S+)", re.IGNORECASE)


def name_of(page):
    return str(page.relative_to(ROOT))


def sources():
    return [path for name, top in PACKAGES.items() for path in top.glob(f"{name}/**/*.py")]


def target_of(page, link):
    """Return the file and the place that a link within the project names."""
    parts = urlsplit(link)
    return (page.parent / unquote(parts.path)).resolve() if parts.path else page, parts.fragment


def broken(page, link):
    file, place = target_of(page, link)
    if not file.exists():
        return f"{name_of(page)} links to {link}, which does not exist"
    if place and (file.suffix != ".md" or place not in anchors(file)):
        return f"{name_of(page)} links to {link}, but the file has no such heading"
    return ""


def test_every_link_within_the_project_leads_somewhere():
    inside = [(page, link) for page in pages() for link in links(page) if "://" not in link]
    assert len(inside) > 150
    assert not [found for page, link in inside if (found := broken(page, link))]


def test_headings_that_are_linked_have_one_anchor_everywhere():
    """Code hosts keep each blank of a heading; Python-Markdown joins them."""
    for page in pages():
        for link in links(page):
            assert not re.search(r"#.*--", link), f"{name_of(page)}: {link}"


@pytest.mark.parametrize("link", ["no.md", "#no-such-heading", "docs/data.md#no", "Makefile#clean"])
def test_a_broken_link_is_found(link):
    assert link in broken(ROOT / "README.md", link)


def test_anchors_are_those_of_code_hosts():
    assert slug("`vertibayes nb`: what's `--new`?") == "vertibayes-nb-whats---new"
    assert slug("A [link](x.md#y), *stressed*") == "a-link-stressed"


def test_every_page_that_the_code_names_exists():
    named = [
        (path, found)
        for path in sources()
        for found in re.findall(r"docs/[\w/]+\.md(?:#[\w-]+)?", path.read_text())
    ]
    assert len(named) > 10
    assert not [broken(path, found) for path, found in named if broken(ROOT / "x", found)]


def test_every_external_address_is_well_formed_and_encrypted():
    found = [(page, url) for page in [*pages(), *sources()] for url in URL.findall(text_of(page))]
    assert len(found) > 5
    for page, url in found:
        parts = urlsplit(url.rstrip(".;:"))
        # Names of terms that nobody opens are at www.w3.org and schema.org.
        local = parts.hostname in {"127.0.0.1", "localhost", "www.w3.org", "schema.org"}
        assert parts.scheme == "https" or local, f"{name_of(page)}: {url}"
        assert local or re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.hostname or ""), url


def test_every_doi_is_well_formed():
    found = [(page, doi) for page in [*pages(), *sources()] for doi in DOI.findall(text_of(page))]
    assert len(found) > 5
    for page, doi in found:
        assert re.match(r"10\.\d{4,9}/[^\s]*\w", doi), f"{name_of(page)}: {doi}"


# ---- paths and names in backticks ----------------------------------------------------------------


def paths_in(page):
    """Return what looks like a file or folder of the project."""
    for code in CODE.findall(prose(page)):
        for word in code.split():
            path = word.partition("::")[0].strip("(),:;")
            if path.partition("/")[0] in TOP and "/" in path and not re.search(r"[*<{$]", path):
                yield path


def test_every_path_in_backticks_exists():
    found = [
        (page, path)
        for page in current_pages()
        for path in paths_in(page)
        if path not in WRITTEN_BY_READERS
    ]
    assert len(found) > 200
    missing = [
        f"{name_of(page)}: {path}"
        for page, path in found
        if not any((ROOT / form).exists() for form in (path, f"{path}.py", f"tests/{path}"))
    ]
    assert not missing, "\n".join(missing)


def modules_in(row):
    """Return the paths of a row "to change | edit": a bare name is in the folder before it."""
    folder = None
    for name in re.findall(r"`([\w/.]+)`", row.partition(" | ")[2]):
        path = ROOT / name
        if name.partition("/")[0] in TOP and "/" in name:
            folder = path if name.endswith("/") else path.parent
            yield path
        elif folder is not None and re.fullmatch(r"[a-z0-9_/]+", name):
            yield folder / name


def test_every_module_in_the_tables_of_changes_exists():
    homes = [
        ROOT / "docs" / "design.md",
        *(ROOT / name / "README.md" for name in ("mpc", "protocols", "vertibayes")),
    ]
    named = [
        path
        for page in homes
        for row in text_of(page).partition("\n| to change | edit |\n")[2].splitlines()
        if row.startswith("| ")
        for path in modules_in(row)
    ]
    assert len(named) > 250
    missing = [
        path for path in named if not (path.exists() or path.with_name(f"{path.name}.py").exists())
    ]
    assert not missing


def test_each_folder_of_queries_has_a_row_in_the_table_of_changes():
    (queries,) = PACKAGES["vertibayes_protocols"].glob("*/queries")
    rows = text_of(ROOT / "protocols" / "README.md")
    for path in queries.glob("*/__init__.py"):
        assert rows.count(f"/queries/{path.parent.name}/") == 1


def current_pages():
    """Return the pages about what is so today: a changelog may name what is gone."""
    return [page for page in pages() if page.name != "CHANGELOG.md"]


@cache
def resolves(name):
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = PACKAGES[parts[0]].joinpath(*parts[:length])
        if path.is_dir() or path.with_suffix(".py").is_file():
            if length == len(parts):
                return True
            value = importlib.import_module(".".join(parts[:length]))
            for part in parts[length:]:
                if not hasattr(value, part):
                    return part in getattr(value, "__annotations__", {})
                value = getattr(value, part)
            return True
    return False


def test_every_dotted_name_in_backticks_exists():
    pattern = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
    found = [
        (page, name)
        for page in current_pages()
        for code in CODE.findall(prose(page))
        for name in pattern.findall(code)
        if not name.endswith(".json")
    ]
    assert len(found) > 50
    missing = {f"{name_of(page)}: {name}" for page, name in found if not resolves(name)}
    assert not missing, "\n".join(sorted(missing))


# ---- options -------------------------------------------------------------------------------------


def options_of(command):
    return {form for option in command.params for form in (*option.opts, *option.secondary_opts)}


@cache
def known():
    """Return the options of each command, and of each command of `roster`, by name."""
    group = typer.main.get_command(app)
    table = {(name,): options_of(command) for name, command in group.commands.items()}
    for name, command in group.commands.items():
        for inner, leaf in getattr(command, "commands", {}).items():
            table[name, inner] = options_of(leaf)
    return table | {(): options_of(group)}


def wrong_options(words):
    """Return the options of a call of `vertibayes` that its command does not have."""
    words = [word.strip("[](),;:") for word in words]
    name = next((tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in known()), ())
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    return sorted(given - known()[name] - {"--help"})


def test_every_option_in_the_documents_is_one_of_its_command():
    calls = [
        (page, words)
        for page in current_pages()
        for line in code_of(page)
        for words in commands(line, "vertibayes")
        if words
    ]
    assert len(calls) > 80
    wrong = {
        f"{name_of(page)}: vertibayes {' '.join(words)}: {options}"
        for page, words in calls
        if (options := wrong_options(words))
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_every_command_in_the_documents_exists():
    first = {name[0] for name in known() if name}
    for page in current_pages():
        for code in code_of(page):
            for words in commands(code, "vertibayes"):
                if words and re.fullmatch(r"[a-z]+", words[0]) and words[0] != "import":
                    assert words[0] in first, f"{name_of(page)}: {code}"


def options_of_benchmarks():
    """Return the options that a benchmark declares, or shows in its usage."""
    for path in ROOT.glob("benchmarks/**/*.py"):
        yield from re.findall(r"(?<![\w-])--[a-z][a-z-]*", path.read_text())


def test_every_option_that_is_named_alone_exists():
    ours = set().union(*known().values(), options_of_benchmarks())
    named = [
        (page, word.partition("=")[0])
        for page in current_pages()
        for code in CODE.findall(prose(page))
        if code.startswith("--")
        for word in code.split()
        if re.match(r"--[a-z]", word)
    ]
    assert len(named) > 100
    missing = {f"{name_of(page)}: {option}" for page, option in named if option not in ours}
    assert not missing, "\n".join(sorted(missing))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("vertibayes learn --data a.csv --no-such 3", ["--no-such"]),
        (".venv/bin/vertibayes roster show --epsilon 1", ["--epsilon"]),
        ("make && vertibayes nb --sites=3 | tee log", ["--sites"]),
        ("vertibayes learn --data a.csv --sites=3", []),
    ],
)
def test_an_option_of_another_command_is_found(line, wrong):
    (words,) = commands(line, "vertibayes")
    assert wrong_options(words) == wrong
