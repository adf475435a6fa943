"""Copy the project's Markdown to the folder that the site is built from, in the same folders.

    python docs/site/pages.py build/pages

A link between two pages is the same in a clone, on a code host and in the site. Only a link to a
source file changes: the site has a page with the file's text, `NAME.py.md`. The pages of the API
(`docs/site/reference.py`) are written here too.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("*.md", "*/README.md", "docs/**/*.md", "examples/**/*.md", "integrations/*/*.md")
PICTURES = ("docs/**/*.svg", "docs/**/*.png")
LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "bash", ".yml": "yaml"}
LINK = re.compile(r"(\]\()([^)#:]+)(#[^)]*)?\)")


def main(target: Path) -> None:
    """Write the pages, the pictures, the source files that pages link to, and the API's pages."""
    shutil.rmtree(target, ignore_errors=True)
    sources = set[Path]()
    for page in matching(PAGES):
        sources |= set(linked_sources(page))
        write(target / page.relative_to(ROOT), LINK.sub(to_page, page.read_text(encoding="utf-8")))
    for source in sources:
        write(target / f"{source.relative_to(ROOT)}.md", source_page(source))
    for picture in matching(PICTURES):
        copy = target / picture.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, copy)
    for name, text in reference.pages().items():
        write(target / "docs" / "reference" / name, text)


def matching(patterns: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of the project that have one of these forms."""
    for pattern in patterns:
        yield from sorted(ROOT.glob(pattern))


def linked_sources(page: Path) -> Iterator[Path]:
    """Yield the source files that a page links to."""
    for _, link, _ in LINK.findall(page.read_text(encoding="utf-8")):
        file = (page.parent / link).resolve()
        if file.suffix in LANGUAGES and file.is_file():
            yield file


def to_page(link: re.Match[str]) -> str:
    """Let a link to a source file lead to the page that shows the file."""
    return f"](<{link[2]}.md>)" if Path(link[2]).suffix in LANGUAGES else link[0]


def source_page(source: Path) -> str:
    """Return a page with the text of a source file."""
    text = source.read_text(encoding="utf-8")
    return f"# {source.relative_to(ROOT)}\n\n~~~~{LANGUAGES[source.suffix]}\n{text}~~~~\n"


def write(path: Path, text: str) -> None:
    """Write a page and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
