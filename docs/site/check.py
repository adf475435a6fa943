"""Check the built site: it loads nothing from outside, and every link in it leads somewhere.

    python docs/site/check.py build/site

The strict build checks the links of pages. This checks what the theme and the API reference add.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
UNLOADED = {"canonical", "next", "prev", "alternate"}  # a <link> that a browser does not follow


class Page(HTMLParser):
    """What a page loads, what it links to, and the places that links may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads, self.links, self.places = list[str](), list[str](), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and the ids of one element."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        address = given.get(LOADED.get(tag, ""), "")
        if address and given.get("rel") not in UNLOADED:
            self.loads.append(address)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


def complaints(site: Path) -> Iterator[str]:
    """Yield what is wrong, page by page."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses are those of a server
            continue
        name = path.relative_to(site)
        for address in page.loads:
            if is_outside(address):
                yield f"{name} loads {address} from outside; expected a file of the site"
            elif not (path.parent / urlsplit(address).path).exists():
                yield f"{name} loads {address}, which does not exist"
        for link in page.links:
            if not is_outside(link) and not leads_somewhere(link, path, pages):
                yield f"{name} links to {link}, which does not exist"


def is_outside(address: str) -> bool:
    """Whether an address is on another host."""
    return bool(urlsplit(address).scheme) or address.startswith("//")


def leads_somewhere(link: str, path: Path, pages: Mapping[Path, Page]) -> bool:
    """Whether the file of a link exists, and the place in it."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target not in pages:
        return target.is_file()
    return unquote(parts.fragment) in pages[target].places


def main(site: Path) -> None:
    """Print what is wrong and exit with 1; otherwise print the size of the site."""
    found = list(complaints(site))
    if found:
        sys.exit("\n".join(found))
    files = [path for path in site.rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{site}/index.html: {pages} pages, {size:.1f} MB, loads nothing from outside")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
