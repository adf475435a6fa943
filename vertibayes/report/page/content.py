"""The parts of which the page is made: texts, numbers, tables, lists and drawings, without HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a file, as it is shown."""

    key: str  # the file, and where the number is in it (`Entry.key`)
    value: str  # the number, unrounded
    text: str  # the number as it is shown
    kind: ClassVar[str] = "number"


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the data: a variable, a state, a site or a file, which is shown as it is."""

    text: str
    kind: ClassVar[str] = "name"


@dataclass(frozen=True, slots=True)
class Cut:
    """A count that the release rule cut; `text` says what is known of it."""

    text: str
    kind: ClassVar[str] = "cut"


@dataclass(frozen=True, slots=True)
class Term:
    """A word that the section of words explains; `word` is its key in `glossary.WORDS`."""

    word: str
    text: str
    kind: ClassVar[str] = "term"


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a section of the page."""

    section: str
    text: str
    kind: ClassVar[str] = "link"


Piece: TypeAlias = str | Number | Name | Cut | Term | Link
Text: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: Text
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph that must not be missed."""

    text: Text
    kind: ClassVar[str] = "note"


@dataclass(frozen=True, slots=True)
class Small:
    """A paragraph that most readers may skip."""

    text: Text
    kind: ClassVar[str] = "small"


class Tile(NamedTuple):
    """A key figure: what it is, the figure, and what must be known to read it."""

    label: Text
    figure: Text
    note: Text = ()


@dataclass(frozen=True, slots=True)
class Tiles:
    """Key figures side by side."""

    items: list[Tile]
    kind: ClassVar[str] = "tiles"


class Fact(NamedTuple):
    """A question of a reader, and its answer."""

    label: Text
    blocks: list[Block]


@dataclass(frozen=True, slots=True)
class Facts:
    """Questions with their answers, one below the other."""

    items: list[Fact]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True, slots=True)
class Columns:
    """Parts side by side where the page is wide enough; `narrow` parts need less room."""

    parts: list[list[Block]]
    narrow: bool = False
    kind: ClassVar[str] = "columns"


@dataclass(frozen=True, slots=True)
class Words:
    """Words with their explanations, which the links of `Term` lead to: key, word, meaning."""

    items: list[tuple[str, str, str]]
    kind: ClassVar[str] = "words"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: list[Text]
    kind: ClassVar[str] = "bullets"


@dataclass(frozen=True, slots=True)
class Table:
    """A table, of which the first cell of each row is its head."""

    caption: str
    heads: list[str]
    rows: list[list[Text]]
    kind: ClassVar[str] = "table"


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that a reader can open; all are open in print."""

    title: Text
    blocks: list[Block]
    kind: ClassVar[str] = "fold"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section."""

    text: Text
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG element of this package, with escaped names; scripts find it by `name`."""

    name: str
    svg: str
    kind: ClassVar[str] = "drawing"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG file, which is shown as an image: nothing in it can act on the page."""

    svg: str
    alternative: str
    kind: ClassVar[str] = "picture"


@dataclass(frozen=True, slots=True)
class Slot:
    """An empty place that a script fills."""

    name: str
    kind: ClassVar[str] = "slot"


Block: TypeAlias = (
    Paragraph
    | Note
    | Small
    | Tiles
    | Facts
    | Columns
    | Words
    | Bullets
    | Table
    | Fold
    | Heading
    | Drawing
    | Picture
    | Slot
)


@dataclass(frozen=True, slots=True)
class Section:
    """A section."""

    name: str  # by which links and scripts find it
    title: str
    lead: Text  # what the reader sees, and what it does not show
    blocks: list[Block]
