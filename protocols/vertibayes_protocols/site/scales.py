"""The natural order of a column's texts: answers on a scale, and numbers with words.

The order depends on the set of texts alone, so that sites with the same texts have the same order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from vertibayes_protocols.site.inspection import is_date

Rank: TypeAlias = tuple[float, int]

# Each scale ascends; its levels are separated by semicolons, and what is one level by bars.
_SCALES = """\
strongly disagree|disagree strongly|totally disagree|completely disagree;disagree;somewhat disagree\
|slightly disagree|rather disagree|tend to disagree|mostly disagree;neutral|neither|undecided\
|neither agree nor disagree|neither disagree nor agree;somewhat agree|slightly agree|rather agree\
|tend to agree|mostly agree;agree;strongly agree|agree strongly|totally agree|completely agree
never;almost never|hardly ever|very rarely;rarely|seldom;occasionally;sometimes;often|frequently\
;very often|very frequently|usually|mostly|most of the time|regularly;almost always;always
never;yearly|annually;monthly;weekly;daily
none|not at all|nothing;a little|little|slightly|a bit;somewhat|moderately|some\
;quite a bit|much|a lot|considerably;very much|extremely
very low;low;medium|moderate|middle|average|normal|intermediate;high;very high
none|no|absent;minimal;mild|slight|light;moderate;severe;very severe|critical|extreme
very poor|very bad|terrible;poor|bad;fair|average|acceptable|ok;good;very good;excellent
very dissatisfied|very unsatisfied;dissatisfied|unsatisfied;somewhat dissatisfied\
|somewhat unsatisfied;neutral|neither|neither satisfied nor dissatisfied;somewhat satisfied\
;satisfied;very satisfied
very unlikely|extremely unlikely;unlikely;neutral|neither|neither likely nor unlikely;likely\
;very likely|extremely likely
not important|not at all important|unimportant;slightly important;somewhat important\
;moderately important;important;very important;extremely important
very small|tiny;small;medium|middle;large|big;very large|huge
primary;secondary;tertiary
first;second;third;fourth;fifth
monday|mon;tuesday|tue;wednesday|wed;thursday|thu;friday|fri;saturday|sat;sunday|sun
january|jan;february|feb;march|mar;april|apr;may;june|jun;july|jul;august|aug;september|sep\
;october|oct;november|nov;december|dec
stimme überhaupt nicht zu|stimme gar nicht zu|trifft überhaupt nicht zu|trifft gar nicht zu\
;stimme nicht zu|trifft nicht zu|lehne ab;stimme eher nicht zu|trifft eher nicht zu\
|trifft weniger zu;teils/teils|teils teils|teils, teils|weder noch|neutral|unentschieden\
;stimme eher zu|trifft eher zu;stimme zu|trifft zu;stimme voll zu|stimme voll und ganz zu\
|stimme völlig zu|trifft voll zu|trifft voll und ganz zu|trifft völlig zu|trifft genau zu
nie|niemals;fast nie|sehr selten;selten;gelegentlich|ab und zu;manchmal;öfter;oft|häufig\
;sehr oft|sehr häufig|meistens|meist|regelmäßig;fast immer;immer
nie|niemals;jährlich;monatlich;wöchentlich;täglich
gar nicht|überhaupt nicht|kein|keine;kaum;wenig|etwas|ein wenig|ein bisschen;mäßig|teilweise\
;ziemlich|viel;stark|sehr|sehr viel;äußerst|außerordentlich
sehr niedrig|sehr gering;niedrig|gering;mittel|normal|mittelmäßig;hoch;sehr hoch
kein|keine|nein;leicht|gering;mittel|mittelschwer|mäßig;schwer|stark;sehr schwer|sehr stark
sehr schlecht|ungenügend;schlecht|mangelhaft;ausreichend;mittel|mittelmäßig|befriedigend;gut\
;sehr gut;ausgezeichnet|hervorragend
sehr unzufrieden;unzufrieden;eher unzufrieden;neutral|weder noch|teils/teils|teils teils\
;eher zufrieden;zufrieden;sehr zufrieden
sehr unwahrscheinlich;unwahrscheinlich;neutral|weder noch|teils/teils;wahrscheinlich\
;sehr wahrscheinlich
unwichtig|nicht wichtig|gar nicht wichtig|überhaupt nicht wichtig;weniger wichtig\
;eher wichtig|etwas wichtig|teils/teils;wichtig;sehr wichtig
sehr klein;klein;mittel|mittelgroß;groß;sehr groß
nein;vielleicht|teilweise;ja
montag|mo;dienstag|di;mittwoch|mi;donnerstag|do;freitag|fr;samstag|sa|sonnabend;sonntag|so
januar|jan;februar|feb;märz|mär;april|apr;mai;juni|jun;juli|jul;august|aug;september|sep\
;oktober|okt;november|nov;dezember|dez
"""
_NO_ANSWER = (  # these follow the scale
    "don't know|dont know|do not know|no answer|no opinion|prefer not to say|refused|not applicable"
    "|unknown|other|missing|?|weiß nicht|weiss nicht|keine angabe|keine antwort|k.a.|k. a."
    "|verweigert|unbekannt|sonstiges|andere"
)
_NONE = "none|never|no|keine|keiner|kein|nie|nein"  # beside numbers: less than all of them
_LESS = r"<|≤|<=|under|below|less than|fewer than|up to|unter|weniger als|bis zu|bis"
_MORE = r">|≥|>=|over|above|more than|at least|über|mehr als|mindestens|ab"
_NUMBER = re.compile(
    rf"(?:(?P<less>{_LESS})|(?P<more>{_MORE}))?\s*[€$£]?\s*"
    r"(?P<number>-?\d{1,3}(?:[.,' ]\d{3})+(?!\d)|-?\d+(?:[.,]\d+)?)"
    r"(?P<after>\s*\+|.*\b(?:and|or|und|oder) (?:more|over|older|mehr|älter)\b.*)?(?:\D.*)?",
    re.DOTALL,
)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _levels(scale: str) -> dict[str, Rank]:
    levels = enumerate(_folded(scale).split(";"))
    return {one.strip(): (rank, 0) for rank, level in levels for one in level.split("|")}


SCALES = [_levels(scale) for scale in _SCALES.splitlines()]
NO_ANSWER = frozenset(map(_folded, _NO_ANSWER.split("|")))
NONE = frozenset(_NONE.split("|"))


def in_order(texts: Iterable[str]) -> list[str]:
    """Return texts in their natural order; sorted by their characters if they have none.

    Examples
    --------
    >>> in_order(["often", "Never", "sometimes", "don't know"])
    ['Never', 'sometimes', 'often', "don't know"]
    >>> in_order(["5-9", "10+", "< 5"])
    ['< 5', '5-9', '10+']
    """
    by_character = sorted(texts)
    folded = {text: _folded(text) for text in by_character}
    answers = {one for one in folded.values() if one not in NO_ANSWER}
    ranks = _by_scale(answers) or _by_number(answers)
    if ranks is None:
        return by_character
    last = (float("inf"), 0)
    return sorted(by_character, key=lambda text: ranks.get(folded[text], last))


def _by_scale(answers: Collection[str]) -> Mapping[str, Rank] | None:
    scales = (scale for scale in SCALES if scale.keys() >= set(answers))
    return next((scale for scale in scales if _all_differ(scale, answers)), None)


def _by_number(answers: Collection[str]) -> Mapping[str, Rank] | None:
    """Rank numbers with words; a text below a number precedes it, and one above follows it."""
    ranks: dict[str, Rank] = {}
    for text in answers:
        match = _NUMBER.fullmatch(text)
        if match is not None and not is_date(text):
            digits = match["number"]
            grouped = re.fullmatch(r"-?\d{1,3}(?:[.,' ]\d{3})+", digits)
            plain = re.sub("[.,' ]", "", digits) if grouped else digits.replace(",", ".")
            above = bool(match["more"] or match["after"])
            ranks[text] = float(plain), above - bool(match["less"])
        elif text in NONE:
            ranks[text] = float("-inf"), 0
        else:
            return None
    return ranks if _all_differ(ranks, answers) else None


def _all_differ(ranks: Mapping[str, Rank], answers: Collection[str]) -> bool:
    return len({ranks[one] for one in answers}) == len(answers) > 1
