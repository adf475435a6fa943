"""The pictures of protocols are those of their pages, whose messages are those of the modules."""

from __future__ import annotations

import ast
import xml.etree.ElementTree as ElementTree

import pytest

from tests.documents import ROOT, scripts

FOLDER = ROOT / "docs" / "figures"
SVG = "{http://www.w3.org/2000/svg}"
# Pages without a message: an index, and noise that a party adds by itself.
WITHOUT = {"README", "counting", "noise"}


@pytest.fixture(scope="module")
def messages():
    with scripts(FOLDER, "messages") as [module]:
        yield module


def figures_of(text, picture):
    from figure_text import figures

    return list(figures(text, picture.names))


def arrows_of(text, picture):
    return [row.ends for block in figures_of(text, picture) for row in block.rows if row.arrow]


def module_text(path):
    return ast.get_docstring(ast.parse((ROOT / path).read_text()))


def test_each_page_of_a_protocol_shows_its_picture(messages):
    pages = {path.stem: path.read_text() for path in messages.PAGES.glob("*.md")}
    assert set(pages) - WITHOUT == set(messages.PROTOCOLS)
    for name in messages.PROTOCOLS:
        assert pages[name].count(f"](../figures/messages/{name}.svg)") == 1
    drawn = {path.stem for path in messages.PICTURES.glob("*.svg")}
    assert drawn == set(messages.PROTOCOLS)


def test_the_pictures_are_up_to_date(messages):
    for name in messages.PROTOCOLS:
        picture = (messages.PICTURES / f"{name}.svg").read_text()
        assert picture == messages.drawn(name), f"run python docs/figures/messages.py ({name})"


def test_every_row_with_an_arrow_is_drawn(messages):
    """An unknown party would leave its row out of the picture without a word."""
    for name, picture in messages.PROTOCOLS.items():
        page = (messages.PAGES / f"{name}.md").read_text()
        first_cells = [
            cell
            for line in page.splitlines()
            if line.startswith("    ")
            for cell in line.strip().split("  ")
            if any(f" {arrow} " in cell[:24] for arrow in ("->", "<->"))
        ]
        assert len(first_cells) == len(arrows_of(page, picture)), name


def test_a_picture_has_a_title_a_description_and_an_arrow_for_each_message(messages):
    for name, picture in messages.PROTOCOLS.items():
        root = ElementTree.parse(messages.PICTURES / f"{name}.svg").getroot()
        title, description = (root.find(f"{SVG}{tag}").text for tag in ("title", "desc"))
        page = (messages.PAGES / f"{name}.md").read_text()
        assert page.splitlines()[0].lstrip("# ") in title
        shapes = [shape.get("class") for shape in root.iter()]
        assert shapes.count("arrow") >= len(arrows_of(page, picture))
        assert shapes.count("party") == shapes.count("life") == len(picture.columns)
        assert all(party in description for party in picture.columns), name
        assert "http" not in ElementTree.tostring(root, encoding="unicode").replace(SVG[1:-1], "")


def test_the_messages_of_a_docstring_are_in_the_page_in_the_same_order(messages):
    """A page may have more of them: a second protocol, or a step that another module does."""
    compared = 0
    for name, picture in messages.PROTOCOLS.items():
        page = arrows_of((messages.PAGES / f"{name}.md").read_text(), picture)
        left = iter(page)
        for path in picture.modules:
            arrows = arrows_of(module_text(path), picture)
            assert arrows, f"{path} has no message that the picture of {name} knows"
            for arrow in arrows:
                assert arrow in left, f"{path}: {arrow} is not in {name}.md, or in another order"
            compared += len(arrows)
    assert compared >= 90


# Short figures are the same in both places, to the letter.
VERBATIM = {
    "additive_scheme",
    "frequency_oracles",
    "masked_sum",
    "paillier",
    "product_scheme",
    "scalar_product",
    "zero_shares",
}


def test_short_figures_are_the_same_to_the_letter(messages):
    from figure_text import blocks

    for name in VERBATIM:
        picture = messages.PROTOCOLS[name]
        page = [lines for _, lines in blocks((messages.PAGES / f"{name}.md").read_text())]
        (path,) = picture.modules
        module = [lines for _, lines in blocks(module_text(path))]
        drawn = [lines for lines in module if figures_of(indented(lines), picture)]
        assert drawn and all(lines in page for lines in drawn), name


def indented(lines):
    return "".join(f"    {line}\n" for line in lines)


def test_another_message_and_another_order_are_found(messages):
    picture = messages.PROTOCOLS["paillier"]
    text = module_text(*picture.modules)
    page = arrows_of((messages.PAGES / "paillier.md").read_text(), picture)
    assert arrows_of(text, picture) == page
    for other in ("owner -> analyst  ", "who -> second  "):
        assert arrows_of(text.replace("owner -> second  ", other, 1), picture) != page
    lines = text.splitlines(keepends=True)
    (at,) = [number for number, line in enumerate(lines) if "owner -> second  " in line]
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    assert arrows_of("".join(lines), picture) != page
