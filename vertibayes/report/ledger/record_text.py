"""What released tables show of one person, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from vertibayes.report.ledger.record import MISSING, Alike, AskedRecord, Shown, name_of
from vertibayes.report.ledger.statement import in_utc, titles
from vertibayes.report.ledger.text import WIDTH
from vertibayes.words import counted

MOST_GROUPS = 10  # of a study, unless all are asked for
FEW = 3  # tables of a group that are named
NOT_COUNTED = (
    "None counts this record: it was not among the records of this site that the study used, as "
    "the sites matched them or as the data were then."
)
NOTHING_KEPT = (
    "They count this record if it was in the data then. The memory does not have the data of these "
    "tables, for example of sums over the records of several parties."
)
NOT_SAID = (
    "This site cannot say what the columns of other sites add. A count is of at most the people "
    "with the same values of this site's columns, and can be of this person alone. If a study also "
    "counts people whom only other sites hold, they can be in the same cells. Differences of "
    "tables can show more (--verdicts). The ledger also has winners of choices, sums and scores "
    "that left this site; this answer does not. What other sites revealed is in their ledgers."
)


def record_text(party: str, asked: AskedRecord, shown: Sequence[Shown], *, everything: bool) -> str:
    """Return what a person asked: which tables count the person, and what they show."""
    lines = [f"Released tables of {party} that count this record. The answer is for this person."]
    if not asked.is_here:
        lines.append(
            "The record is not in the data today. It was in earlier data, from which the tables "
            "come: the numbers are of these."
        )
    if not shown:
        lines.append("No table has left this site.")
    for each in shown:
        lines += ["", *_study(each, everything)]
    lines += ["", NOT_SAID] if shown else []
    return "\n".join(line if line.startswith(" ") else fill(line, WIDTH) for line in lines) + "\n"


def _study(shown: Shown, everything: bool) -> Iterator[str]:
    title, subtitle = titles(shown.purpose)
    yield f"{title}. {subtitle}".strip()
    tables, rule = counted(len(shown.tables), "table"), shown.rule or "exact counts"
    to = ", ".join(sorted({table.to for table in shown.tables}))
    what = f"{tables} to {to}, last on {in_utc(shown.last)}: {rule}."
    if shown.is_in is False:
        yield f"{what} {NOT_COUNTED if shown.states else NOTHING_KEPT}"
        return
    yield f"{what} {_membership(shown)}"
    yield from _changes(shown)
    values = shown.asked.values_in(shown.having[0])
    own = sorted({name for alike in shown.alike for name in alike.own})
    if own:
        yield f"Its values then: {', '.join(f'{name} = {values[name]}' for name in own)}."
    if any(values[name] == MISSING for name in own):
        yield "A table counts records without a value only if a missing value is a state in it."
    yield "Other people here with the same values of this site's columns, and in which tables:"
    some = shown.alike if everything else shown.alike[:MOST_GROUPS]
    yield from map(_group, some)
    if rest := len(shown.alike) - len(some):
        yield f"    and {rest:,} more combinations: --all lists them"
    if shown.elsewhere:
        yield f"  {counted(shown.elsewhere, 'table')} with columns of other sites alone"
    if shown.parts:
        yield f"  {counted(shown.parts, 'table')} of a part of the records: this one or not"
    yield _conclusion(shown)


def _membership(shown: Shown) -> str:
    if shown.is_in:
        return "The study counts this record."
    return "This site cannot know whether the study counts this record. If it does:"


def _changes(shown: Shown) -> Iterator[str]:
    if len(shown.having) > 1:
        yield (
            f"The tables can come from any of {len(shown.having)} states of the data in the "
            "memory: the smallest of each number is shown."
        )
    asked, then = shown.asked, shown.having[0]
    if not (changed := shown.changes_since(then)):
        return
    words = ", ".join(f"{name} {count:,}" for name, count in changed.items())
    yield f"The data have changed since ({words}): the numbers are of the data of the tables."
    if asked.is_here:
        before, today = asked.values_in(then), asked.values_in(asked.today)
        own = [f"{n} is {today[n]}" for n in before if n in today and before[n] != today[n]]
        if own:
            yield f"The record itself has changed: today {', '.join(own)}."


def _group(alike: Alike) -> str:
    others = "nobody else" if not alike.others else f"{alike.others:,} more"
    beside = [", ".join(n for n in t.variables if n not in alike.own) for t in alike.tables]
    named = "; ".join(text or "no other column" for text in beside[:FEW])
    more = f"; and {len(beside) - FEW:,} more" if len(beside) > FEW else ""
    text = f"{', '.join(alike.own)}: {others} ({counted(len(beside), 'table')}, with {named}{more})"
    return fill(text, WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _conclusion(shown: Shown) -> str:
    """Return what an analyst can conclude by the rule of the tables."""
    kind, _, fewest = name_of(shown.rule).partition(" ")
    if "noise" in shown.rule:
        return (
            "The counts have noise. As far as its promise holds, nobody can be certain from them "
            "what values this record has: epsilon, in the ledger, bounds how much they show."
        )
    if kind in ("cut", "rounded"):
        return _hidden(shown, kind, int(fewest))
    alone = sum(len(alike.tables) for alike in shown.alike if not alike.others)
    if not alone:
        return (
            "The counts are exact. By this site's columns no table has the record alone; with "
            "columns of other sites a count can still be 1."
        )
    return (
        f"The counts are exact, and {counted(alone, 'table')} "
        f"{'has' if alone == 1 else 'have'} the record alone: whoever knows these values of the "
        "person finds the record there as a count of 1, if it has a value of each column and no "
        "other site adds people of its own, and reads what the person has in the other columns."
    )


def _hidden(shown: Shown, kind: str, fewest: int) -> str:
    # The smallest count that may be released as another number than 0: see `lookups.rounded`.
    least = fewest if kind == "cut" else fewest - fewest // 2 - 2 * (fewest > 4)
    few = sum(len(alike.tables) for alike in shown.alike if alike.others + 1 < least)
    what = f"Counts below {fewest} are released as 0"
    if kind == "rounded":
        what = f"Counts are released as the nearest multiple of {fewest}"
    how = "exactly" if kind == "cut" else "to the nearest multiple"
    tables = counted(few, "table") if few else "no table"
    return (
        f"{what}. In {tables} of these fewer than {least} people here have these values, so that "
        "the count with the record is released as 0, unless other sites add people of their own; "
        "sums of tables can still show some such counts. A larger count is released "
        f"{how}, and shows what its people have as a group."
    )
