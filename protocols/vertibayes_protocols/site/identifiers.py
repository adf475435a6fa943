"""Identifiers in a normal form: what the lists of people of several sites are matched by.

Each column of an identifier has a rule. The names of the rules are part of what is hashed, so that
sites with different rules match nobody. A record that lacks a part of its identifier matches
nobody. No identifier appears in an error, only the numbers of records.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.prefixed import prefixed
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.column_builder import PackedTexts
from vertibayes_protocols.site.text_column import TextColumn

DATE = "date:"
KNOWN = 'exact, text, digits, name, or a date with its format, as "date:%d.%m.%Y"'
JOINS = {  # by rule: what it would join that `exact` does not
    "digits": "leading zeros",
    "text": "outer spaces, or upper and lower case",
}
SHAPES = {  # what all texts of a column are: the first that fits
    "whole numbers": r"\d+",
    "numbers with a decimal point": r"\d+[.,]\d+",
    "dates that begin with the year": r"\d{4}[-./]\d{1,2}[-./]\d{1,2}\b.*",
    "dates that end with the year": r"\d{1,2}[-./]\d{1,2}[-./](\d{2}|\d{4})",
    "letters alone": r"[^\W\d_]+",
    "letters and digits": r"[^\W_]+",
}
WHOLE_AS_DECIMAL = r"\d+[.,]0+"  # as programs write whole numbers of a column with missing values


def _text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _digits(text: str) -> str:
    """Return the decimal digits; nothing of a number that is all zeros."""
    return "".join(str(unicodedata.digit(c)) for c in text if c.isdecimal()).lstrip("0")


def _name(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text).casefold() if c.isalpha())


def _stable(rule: Callable[[str], str]) -> Callable[[str], str]:
    """Apply a rule until nothing changes: folding the case can undo a normal form of Unicode."""

    def apply(text: str) -> str:
        while (after := rule(text)) != text:
            text = after
        return text

    return apply


RULES: Mapping[str, Callable[[str], str]] = {
    "exact": lambda text: text if text.strip() else "",
    "text": _stable(_text),
    "digits": _digits,
    "name": _stable(_name),
}


def rule_of(name: str) -> Callable[[str], str]:
    """Return what brings a text into its normal form; empty if it has no such form.

    Examples
    --------
    >>> rule_of("digits")(" 007-1"), rule_of("name")("Ångström, J."), rule_of("text")(" Bo  X")
    ('71', 'angstromj', 'bo x')
    >>> rule_of("date:%d.%m.%Y")("3.12.1999")
    '1999-12-03'
    """
    if name in RULES:
        return RULES[name]
    if not name.startswith(DATE):
        raise ValueError(f"{name!r} is not a rule of identifiers: expected {KNOWN}")
    form = name.removeprefix(DATE)
    if sorted(re.findall("%(.)", form)) != ["Y", "d", "m"]:
        raise ValueError(f"{name!r} must have %Y, %m and %d, each once, as date:%d.%m.%Y")
    return lambda text: _date(text, form)


def _date(text: str, form: str) -> str:
    try:
        return datetime.strptime(text.strip(), form).date().isoformat()
    except ValueError:
        return ""


@dataclass(frozen=True)
class Identifiers:
    """The identifiers of a site's records, in normal form, each once."""

    rules: tuple[str, ...]  # the rule of each column
    forms: tuple[bytes, ...] = field(repr=False)  # the normal forms, in the order of the records
    records: NDArray[np.int64] = field(repr=False)  # the place of the record that has each of them
    incomplete: int = 0
    dropped: int = 0
    advice: tuple[str, ...] = ()  # sentences about the columns, for the site's owner
    shapes: tuple[str, ...] = ()  # sentences for the site's owner: what is in each column

    def __len__(self) -> int:
        return len(self.forms)

    @classmethod
    def of(
        cls,
        source: str,
        columns: Mapping[str, TextColumn],
        rules: Sequence[str],
        *,
        missing: Collection[str] = (),
        drop: bool = False,
        remedy: str = "correct one of them",
    ) -> Identifiers:
        """Bring the identifiers of all records into their normal form."""
        if len(rules) != len(columns):
            raise ValueError(
                f"each column of the identifier needs a rule: {len(columns)} columns "
                f"({', '.join(columns)}), {len(rules)} rules ({', '.join(rules)})"
            )
        known = {
            name: [text.strip() for text in column.texts if text.strip() and text not in missing]
            for name, column in columns.items()
        }
        for (name, texts), rule in zip(known.items(), rules, strict=True):
            _check_decimals(source, name, texts, rule)
        parts = [
            _parts(column, rule, missing)
            for column, rule in zip(columns.values(), rules, strict=True)
        ]
        named = " and ".join(map(repr, columns))
        forms = [b"".join(each) if all(each) else b"" for each in zip(*parts, strict=True)]
        if not any(forms):
            raise DataError(
                f"{source}: no record has an identifier in {named} by the rules "
                f"{', '.join(rules)}: compare the rules with the column"
            )
        kept, dropped = _once(source, named, forms, drop=drop, remedy=remedy)
        return cls(
            tuple(rules),
            tuple(forms[at] for at in kept),
            np.array(kept, np.int64),
            forms.count(b""),
            dropped,
            tuple(_advice(columns, rules)),
            tuple(_shape(name, texts) for name, texts in known.items()),
        )

    def record_of(self, parts: Sequence[str]) -> int | None:
        """Return the place of the record with an identifier in its normal form; None without."""
        columns = [TextColumn.of([part]) for part in parts]
        each = [_parts(c, rule, ())[0] for c, rule in zip(columns, self.rules, strict=True)]
        form = b"".join(each)
        is_known = all(each) and form in self.forms
        return int(self.records[self.forms.index(form)]) if is_known else None

    def take(self, order: NDArray[np.integer], records: int) -> Identifiers:
        """Return the identifiers of some of the records, or of all in another order."""
        which = np.full(records, -1, np.int64)
        which[self.records] = np.arange(len(self.forms))
        chosen = which[order]
        here = np.flatnonzero(chosen >= 0)
        return replace(self, forms=tuple(self.forms[at] for at in chosen[here]), records=here)

    def by_form(self) -> NDArray[np.int64]:
        """Return the records in the order of their normal forms, which is the same at all sites."""
        return self.records[sorted(range(len(self.forms)), key=self.forms.__getitem__)]

    def findings(self) -> list[str]:
        """Return sentences about records that match nobody, for the site's owner."""
        sentences = []
        if self.incomplete:
            sentences.append(f"{self.incomplete} records without a valid identifier match nobody")
        if self.dropped:
            sentences.append(f"{self.dropped} records that share an identifier match nobody")
        return [*sentences, *self.advice]


def _check_decimals(source: str, name: str, texts: Collection[str], rule: str) -> None:
    """Refuse decimals of the rule digits: 1.0 would be the person 10 of another site."""
    if rule == "digits" and texts and all(re.fullmatch(WHOLE_AS_DECIMAL, t) for t in texts):
        raise DataError(
            f"{source}: the column {name!r} has whole numbers that are written as decimals, and "
            "the rule digits reads 1.0 as 10: write them without a decimal point"
        )


def _shape(name: str, texts: Collection[str]) -> str:
    """Return what is in a column, without a text of it."""
    fitting = (
        shape for shape, form in SHAPES.items() if all(re.fullmatch(form, text) for text in texts)
    )
    lengths = sorted({*map(len, texts)}) or [0]
    length = " to ".join(map(str, dict.fromkeys((lengths[0], lengths[-1]))))
    shape = next(fitting, "texts of several kinds")
    return f"the column {name!r} has {shape}, of {length} characters"


def _parts(column: TextColumn, rule: str, missing: Collection[str]) -> list[bytes]:
    """Return the part of each record's identifier, with its rule; empty if it has none."""
    named = prefixed(rule.encode())
    forms = [
        named + prefixed(form.encode()) if form else b"" for form in _forms(column, rule, missing)
    ]
    return [forms[place] for place in column.places.tolist()]


def _forms(column: TextColumn, rule: str, missing: Collection[str]) -> list[str]:
    """Return the normal form of each text of a column; empty if it has none."""
    apply = rule_of(rule)
    return ["" if text in missing else apply(text) for text in column.texts]


def unified(column: TextColumn, rule: str, missing: Collection[str] = ()) -> TextColumn:
    """Return a column in which all texts of one normal form are the first of them.

    Examples
    --------
    >>> unified(TextColumn.of(["007", "8", "7", "-"]), "digits")
    TextColumn(texts=('007', '8', '-'), places=array([0, 1, 0, 2]))
    """
    first: dict[tuple[bool, str], int] = {}
    texts: list[str] = []
    of = []
    for text, form in zip(column.texts, _forms(column, rule, missing), strict=True):
        of.append(first.setdefault((bool(form), form or text), len(texts)))
        if of[-1] == len(texts):
            texts.append(text)
    return TextColumn(tuple(texts), np.array(of, np.int64)[column.places])


def _once(
    source: str, named: str, forms: Sequence[bytes], *, drop: bool, remedy: str
) -> tuple[list[int], int]:
    """Return the records whose identifier no other record has, and the number of the others."""
    first: dict[bytes, int] = {}
    twice: set[bytes] = set()
    for at, form in enumerate(forms):
        if form and first.setdefault(form, at) != at:
            if not drop:
                raise DataError(
                    f"{source}: records {first[form] + 1} and {at + 1} have the same identifier in "
                    f"{named}, in its normal form: {remedy}"
                )
            twice.add(form)
    kept = [at for form, at in first.items() if form not in twice]
    return kept, sum(map(bool, forms)) - len(kept)


def _advice(columns: Mapping[str, TextColumn], rules: Sequence[str]) -> list[str]:
    """Return which other rule would join more people than `exact`, by what a column has."""
    sentences = []
    for (name, column), rule in zip(columns.items(), rules, strict=True):
        for other in _would_join(column.texts) if rule == "exact" else ():
            sentences.append(
                f"the column {name!r} has {JOINS[other]}, which the rule exact keeps apart: the "
                f"rule {other} joins them"
            )
    return sentences


def _would_join(texts: Collection[str]) -> list[str]:
    stripped = [text.strip() for text in texts]
    zeros = any(text.isdecimal() and text[0] == "0" for text in stripped if text)
    numbers = all(text.isdecimal() for text in stripped if text)
    spaces = any(text != inner for text, inner in zip(texts, stripped, strict=True))
    cases = any(text != text.lower() for text in texts) and any(t != t.upper() for t in texts)
    digits = ["digits"] if zeros or (numbers and spaces) else []
    return [*digits, "text"] if not numbers and (spaces or cases) else digits


def combined(columns: Sequence[TextColumn]) -> TextColumn:
    """Return one column of identifiers that have several parts; empty where a part is empty."""
    if len(columns) == 1:
        return columns[0]
    places, which = np.unique(
        np.stack([column.places for column in columns]), axis=1, return_inverse=True
    )
    parts = [
        [column.texts[at] for at in row]
        for column, row in zip(columns, places.tolist(), strict=True)
    ]
    texts: dict[str, int] = {}
    of = [texts.setdefault(_joined(each), len(texts)) for each in zip(*parts, strict=True)]
    return TextColumn(tuple(texts), np.array(of, np.int64)[which.reshape(-1)])


def _joined(parts: Sequence[str]) -> str:
    """Return parts as one text: each behind its length, so that no two identifiers are alike."""
    return "".join(f"{len(part)}:{part}" for part in parts) if all(map(str.strip, parts)) else ""


def check_ids(source: str, named: str, ids: TextColumn, remedy: str = "") -> None:
    """Refuse identifiers that are missing or appear twice."""
    counts = np.bincount(ids.places)
    if counts.max() > 1:
        twice = np.flatnonzero(ids.places == int(counts.argmax()))[:2] + 1
        what = f"records {twice[0]} and {twice[1]} have the same {named}"
        raise DataError(f"{source}: {what}{remedy and '; '}{remedy}")
    check_known(source, named, ids)


def check_known(source: str, named: str, ids: TextColumn) -> None:
    """Refuse identifiers that are missing."""
    for place, text in enumerate(ids.texts):
        if not text.strip():
            record = int(np.argmax(ids.places == place)) + 1
            raise DataError(f"{source}, record {record}: {named} is empty")


def order_of(ids: TextColumn) -> NDArray[np.integer]:
    """Return the places of the records, sorted by the characters of their identifiers.

    No other rule applies: "7" and "007" are different people.
    """
    texts = ids.texts
    by_text = (
        texts.order() if isinstance(texts, PackedTexts) else np.argsort(np.array(texts, object))
    )
    rank = np.empty(len(by_text), np.uint32)
    rank[by_text] = np.arange(len(by_text), dtype=np.uint32)
    return np.argsort(rank[ids.places], kind="stable")
