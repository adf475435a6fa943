"""What numpydoc has and Markdown does not, and the comments beside the fields of classes."""

from __future__ import annotations

import re

import griffe

FIELD = re.compile(r"^\s*\w+:.*?  # (.+)$")
# A doctest, from its first prompt to the next empty line.
EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^Examples\n-+\n", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Rewrites docstrings before they are read as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Mark the examples as code, write references as a list, and describe fields."""
        field = FIELD.match(obj.source) if obj.is_attribute and not obj.docstring else None
        if field:
            obj.docstring = griffe.Docstring(f"{field[1][0].upper()}{field[1][1:]}.", parent=obj)
        elif obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """Return a docstring whose examples and references Markdown shows as they are meant."""
    text = re.sub(r"^\.\. \[(\d+)\] ", r"\1. ", text, flags=re.MULTILINE)
    text = re.sub(r"\[(\d+)\]_", r"[\1]", text)
    before, *section = SECTION.split(text, maxsplit=1)
    fenced = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", before)
    return "Examples\n--------\n".join([fenced, *section])
