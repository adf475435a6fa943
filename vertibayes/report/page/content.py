"""The parts of which the page is made: texts, numbers, tables, lists and drawings, without HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a file, as it is shown.

    Parameters
    ----------
    key : str
        The file, and where the number is in it (`Entry.key`).
    value : str
        The number, unrounded.
    text : str
        The number as it is shown.
    """

    key: str
    value: str
    text: str
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


Piece: TypeAlias = str | Number | Name | Cut
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
class Bullets:
    """A list."""

    items: list[Text]
    kind: ClassVar[str] = "bullets"


@dataclass(frozen=True, slots=True)
class Table:
    """A table, of which the first cell of each row is its head.

    Parameters
    ----------
    caption : str
    heads : list of str
    rows : list of list of Text
    """

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


Block: TypeAlias = Paragraph | Note | Bullets | Table | Fold | Heading | Drawing | Picture | Slot


@dataclass(frozen=True, slots=True)
class Section:
    """A section.

    Parameters
    ----------
    name : str
        By which links and scripts find it.
    title : str
    lead : Text
        What the reader sees, and what it does not show.
    blocks : list of Block
    """

    name: str
    title: str
    lead: Text
    blocks: list[Block]
