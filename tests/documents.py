"""What the project's Markdown pages contain: headings, links, code."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "examples", "integrations", "benchmarks", "mpc", "protocols", "vertibayes")
PATTERNS = ("*.md", *(f"{folder}/**/*.md" for folder in FOLDERS))
# The installed packages, and the folders that they lie in.
PACKAGES = {
    "vertibayes_mpc": ROOT / "mpc",
    "vertibayes_protocols": ROOT / "protocols",
    "vertibayes": ROOT,
}

# "How to add a query" in docs/design.md: a reader writes these, and `tests/test_new_query.py` does.
WRITTEN_BY_READERS = {
    "protocols/vertibayes_protocols/queries/enough.py",
    "tests/protocols/test_enough.py",
}
NEW_QUERY = "Enough"

FENCE = re.compile(r"^(```+|~~~+)(\w*)[^\n]*\n(.*?)^\1", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class Block(NamedTuple):
    """A block of code: its page, line and language, and the text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def pages() -> tuple[Path, ...]:
    """Return all pages of the project, without those of environments in it."""
    found = {path for pattern in PATTERNS for path in ROOT.glob(pattern)}
    return tuple(sorted(path for path in found if ".venv" not in str(path.relative_to(ROOT))))


@cache
def text_of(page: Path) -> str:
    """Return a page."""
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return INDENTED.sub("\n", FENCE.sub("", text_of(page)))


def links(page: Path) -> list[str]:
    """Return the targets of a page's links and pictures."""
    return LINK.findall(CODE.sub("", prose(page)))


def anchors(page: Path) -> set[str]:
    """Return the places of a page that a link may name, by the rules of code hosts."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {slug(heading) for heading in headings}


def slug(heading: str) -> str:
    """Return the anchor of a heading."""
    words = re.sub(r"\]\([^)]*\)|[`*\[]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def fenced(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = text_of(page)
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found[2], found[3])
        for found in FENCE.finditer(text)
    ]


def code_of(page: Path) -> list[str]:
    """Return each line of code of a page, also of indented blocks and in the text."""
    text = text_of(page)
    fences = [line for block in fenced(page) for line in joined(block.text).splitlines()]
    indented = [
        line.strip()
        for block in INDENTED.findall(FENCE.sub("", text))
        for line in joined(block).splitlines()
    ]
    return [*fences, *indented, *CODE.findall(prose(page).replace("\n", " "))]


def joined(text: str) -> str:
    """Return shell code in which a command that goes on in the next line is one line."""
    return text.replace("\\\n", " ")


def words_of(line: str) -> list[str]:
    """Return the words of a line of shell code."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # not shell code: an apostrophe
        return line.split()


def commands(line: str, name: str) -> list[list[str]]:
    """Return the arguments of each call of a program in a line of shell code."""
    calls = list[list[str]]()
    for part in re.split(r"\s(?:&&|\|\||[|;])\s", f" {line} "):
        words = words_of(part)
        called = {name, f".venv/bin/{name}"}
        places = [place for place, word in enumerate(words) if word in called]
        if places:
            calls.append(words[places[0] + 1 :])
    return calls


@contextmanager
def scripts(folder: Path, *names: str) -> Iterator[list[ModuleType]]:
    """Import scripts that find each other in their folder, and forget them when the block ends."""
    sys.path.insert(0, str(folder))
    try:
        yield [import_module(name) for name in names]
    finally:
        sys.path.remove(str(folder))
        for script in folder.glob("*.py"):
            sys.modules.pop(script.stem, None)
