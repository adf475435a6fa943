"""Read numbers from text: plain, with a unit, with decimal commas or thousands separators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from typing import NamedTuple

MOST_DIGITS = 300  # of a number; a longer one is text
_UNITS = re.compile(  # if a column has several of these, its units differ; other texts may be codes
    r"[kmu\u00b5]?g|lbs?|oz|[mu]?mol/l|m?g/dl|[dm]?l|[mck]?m|in|ft|mmhg|bpm|\u00b0?[cf]"
    r"|m?s|min|h|hrs?|d|days?|weeks?|months?|yr?s?|years?|[$\u20ac\u00a3]|eur|usd"
)
_SPACES = " '\u2019\u00a0\u202f"  # that separate thousands, beside the comma
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:[,{_SPACES}]\d{{3}})+(?:\.\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+", re.ASCII)
_LONG = re.compile(r"[+-]?\d{4}", re.ASCII)
_PARTS = re.compile(  # a currency, a number, a unit
    rf"(?P<before>[$\u20ac\u00a3]?)\s*(?P<number>[+-]?\d(?:[\d.,{_SPACES}]*\d)?)\s*"
    r"(?P<after>(?:[^\W\d_]|[%\u00b0$\u20ac\u00a3])[^,;:]{0,14})?"
)


class Numerals(NamedTuple):
    """Texts read as numbers."""

    values: Mapping[str, Decimal]  # the values of the texts that are numbers
    words: tuple[str, ...]  # the other texts
    notes: tuple[str, ...] = ()  # messages about numbers that are not written in plain digits
    fault: str = ""  # why texts that look like numbers cannot be read; empty if they can
    sure: bool = True  # whether the separators have one meaning only


def number(text: str) -> Decimal | None:
    """Return the number in plain digits that a text is; None if it is not one."""
    stripped = text.strip()
    if _PLAIN.fullmatch(stripped) is None:
        return None
    value = Decimal(stripped)
    sensible = abs(value.adjusted()) <= MOST_DIGITS
    return value if sensible and len(value.as_tuple().digits) <= MOST_DIGITS else None


def read_plain(texts: Collection[str]) -> Numerals:
    """Read texts as plain numbers."""
    values = {text: value for text in texts if (value := number(text)) is not None}
    return Numerals(values, tuple(text for text in texts if text not in values))


def read_numbers(texts: Collection[str]) -> Numerals:
    """Read texts as numbers in one unit and one notation, which the texts themselves show.

    Examples
    --------
    >>> read_numbers(["1.234,5 kg", "70 kg"]).values
    {'1.234,5 kg': Decimal('1234.5'), '70 kg': Decimal('70')}
    """
    plain = read_plain(texts)
    parts = {text: _PARTS.fullmatch(text.strip()) for text in plain.words}
    numbers = {text: match["number"] for text, match in parts.items() if match is not None}
    numbers = {text: body for text, body in numbers.items() if _is_written(text, body)}
    units = {text: _unit(text) for text in numbers}
    named = {unit.casefold(): unit for unit in units.values() if unit}
    odd_units = len(named) > 1 and not all(map(_UNITS.fullmatch, named))
    few_units = 0 < 2 * sum(map(bool, units.values())) <= len(texts)  # "3 months" among years
    if not numbers or odd_units or few_units:
        return plain
    words = tuple(text for text in plain.words if text not in numbers)
    if len(named) > 1:
        return Numerals({}, words, fault=f"numbers in several units, {_two(sorted(named))}")
    bodies = {text: text.strip() for text in plain.values} | numbers
    notation = _notation(list(bodies.values()))
    if notation is None:
        return Numerals({}, words, fault=f"numbers in several notations, {_differing(bodies)}")
    values = {text: Decimal(_in_plain_digits(body, notation)) for text, body in bodies.items()}
    notes = tuple(_notes(values, bodies, units, notation))
    return Numerals(values, words, notes, sure=notation != "thousands or decimals")


def read_each(texts: Collection[str]) -> Mapping[str, Decimal]:
    """Read each text by itself, so that an odd text does not affect the others.

    The other texts only decide what is ambiguous: "1,234" is a number if they show its separator,
    and a number with a unit is one if most texts have this unit.
    """
    plain = read_plain(texts)
    alone = {text: read_numbers([text]) for text in plain.words}
    units = {text: _unit(text).casefold() for text in alone if alone[text].values}
    named = Counter(unit for unit in units.values() if unit)
    usual = {
        "",
        *(unit for unit, count in named.items() if 2 * count > len(units) + len(plain.values)),
    }
    rest = [text for text, unit in units.items() if unit in usual]
    whole = read_numbers([*plain.values, *rest])
    shown = whole.values if whole.sure else {}
    others = {text: v for text in rest if (v := _known(alone[text], shown, text)) is not None}
    return {**plain.values, **others}


def _known(alone: Numerals, shown: Mapping[str, Decimal], text: str) -> Decimal | None:
    return alone.values[text] if alone.sure else shown.get(text)


def _unit(text: str) -> str:
    """Return the currency or unit of a number; empty if the text has neither."""
    match = None if number(text) is not None else _PARTS.fullmatch(text.strip())
    return "" if match is None else match["before"] or (match["after"] or "").strip()


def _is_written(text: str, body: str) -> bool:
    """Whether a text without currency and unit is a number; 1e400 is too large to be one."""
    too_large = _PLAIN.fullmatch(text.strip()) is not None
    return not too_large and any(
        kind.fullmatch(body) for kind in (_PLAIN, _THOUSANDS, _DECIMAL_COMMA)
    )


def _notation(bodies: Sequence[str]) -> str | None:
    """Return the notation of all numbers; None if their notations differ."""
    odd = [body for body in bodies if _PLAIN.fullmatch(body) is None]
    usual = [body for body in bodies if _PLAIN.fullmatch(body) is not None]
    if not odd:
        return "plain"
    if all(_THOUSANDS.fullmatch(body) for body in odd):
        shown = any("." in body or "," not in body or body.count(",") > 1 for body in odd)
        mixed = any(_LONG.match(body) for body in usual)
        return None if mixed else "thousands" if shown else "thousands or decimals"
    commas = all(_DECIMAL_COMMA.fullmatch(body) for body in odd)
    return "decimals" if commas and not any("." in body for body in usual) else None


def _in_plain_digits(body: str, notation: str) -> str:
    if notation == "decimals":
        return body.replace(".", "").replace(",", ".")
    return body if notation == "plain" else re.sub(rf"[,{_SPACES}]", "", body)


def _notes(
    values: Mapping[str, Decimal],
    bodies: Mapping[str, str],
    units: Mapping[str, str],
    notation: str,
) -> Iterator[str]:
    unit = next((unit for unit in units.values() if unit), None)
    if unit is not None:
        bare = len(bodies) - sum(map(bool, units.values()))
        also = f"; {bare} without a unit are read in the same unit" if bare else ""
        yield f"numbers with the unit {unit!r} are read without it{also}"
    odd = next((text for text in bodies if _PLAIN.fullmatch(bodies[text]) is None), None)
    if odd is not None:
        name = "decimal comma" if notation == "decimals" else "thousands separator"
        yield f"numbers with a {name}: {odd!r} is read as {values[odd]:f}"


def _two(names: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in names[:2]) + (" and others" if names[2:] else "")


def _differing(bodies: Mapping[str, str]) -> str:
    """Return two numbers whose notations differ."""
    odd = [body for body in bodies.values() if _PLAIN.fullmatch(body) is None]
    usual = [body for body in bodies.values() if _PLAIN.fullmatch(body) is not None]
    kinds = (  # two of these differ; comparing all numbers with each other takes too long
        odd,
        (body for body in odd if _THOUSANDS.fullmatch(body) is None),
        (body for body in odd if _DECIMAL_COMMA.fullmatch(body) is None),
        (body for body in usual if "." in body),
        (body for body in usual if _LONG.match(body)),
    )
    firsts = [body for kind in kinds for body in [next(iter(kind), None)] if body is not None]
    one, other = next(two for two in combinations(firsts, 2) if _notation(two) is None)
    return f"as {one!r} and {other!r}"
