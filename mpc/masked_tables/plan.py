"""From tables asked to messages: which terms are extended where, and who sends what to whom.

Pure public combinatorics: every party makes the same plan from the same query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpc.commitments import Commitments, Selection, Term
from mpc.randomness import label
from mpc.rounds import Party

Step: TypeAlias = dict[tuple[Party, Party], list[Term]]  # (sender, receiver) -> terms, in order


class Group(NamedTuple):
    """The tables of one prefix with each of several last operands; the prefix's own if none.

    A table's axes are the prefix's operands in the order given, then the last.
    """

    prefix: tuple[int, ...]
    lasts: tuple[int, ...] = ()


def subsets(prefix: Sequence[int]) -> list[Term]:
    """Return all non-empty subsets of a prefix, as terms."""
    places = sorted(prefix)
    return [t for size in range(1, len(places) + 1) for t in combinations(places, size)]


def _ranges(starts: NDArray[np.intp], stops: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return all places of several ranges, one range after the other."""
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    places: NDArray[np.intp] = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return places


@dataclass(frozen=True)
class Plan:
    """All that the parties do for one query.

    Parameters
    ----------
    commitments : Commitments
    groups : sequence of Group
    selection : Selection
    missing : bool
        Whether cells of missing values are opened too.
    number : int
        Of the query, ascending: masks are for one query. A site that was sent other columns when it
        used a mask again would send a difference in which its own masks stand in the clear.

    Raises
    ------
    ValueError
        If an operand stands twice in a table or is unknown, or several operands without a last.
    """

    commitments: Commitments
    groups: tuple[Group, ...]
    selection: Selection
    missing: bool = False
    number: int = 0
    _leads: dict[Term, set[Party]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        for group in self.groups:
            self._check(group)
            sites = {self.lead_of(z) for z in group.lasts}
            for term in subsets(group.prefix):
                self._leads.setdefault(term, set()).update(sites)

    def _check(self, group: Group) -> None:
        known = range(len(self.commitments.operands))
        if not all(i in known for i in (*group.prefix, *group.lasts)):
            raise ValueError(f"an operand in {group} that was not committed")
        twice = len(set(group.prefix)) < len(group.prefix) or set(group.prefix) & set(group.lasts)
        if not group.prefix or twice or len(set(group.lasts)) < len(group.lasts):
            raise ValueError(f"an operand twice, or none, in {group}")
        if len(group.prefix) > 1 and not group.lasts:
            raise ValueError(f"a table of several operands needs a last one: {group}")
        if not all(self.commitments.operands[i].narrow for i in (*group.prefix, *group.lasts)):
            raise ValueError(f"an operand in {group} that is committed without indicators")

    def lead_of(self, place: int) -> Party:
        """Return the site that counts with an operand as the last: its first holder."""
        return self.commitments.operands[place].holders[0]

    # ---- what is multiplied ----------------------------------------------------------------------

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that hold an operand of a table, sorted: those that take part."""
        asked = {i for group in self.groups for i in (*group.prefix, *group.lasts)}
        return tuple(sorted({h for i in asked for h in self.commitments.operands[i].holders}))

    @cached_property
    def lefts(self) -> tuple[Term, ...]:
        """All terms that stand on the left of a product, in order."""
        return tuple(sorted(self._leads, key=lambda term: (len(term), term)))

    @cached_property
    def rows(self) -> dict[Term, slice]:
        """Where each left term's columns lie in the stacked products."""
        ends = np.cumsum([0, *(self.commitments.width(t) for t in self.lefts)])
        return {
            t: slice(int(a), int(b)) for t, a, b in zip(self.lefts, ends, ends[1:], strict=False)
        }

    @cached_property
    def height(self) -> int:
        """The number of columns of all left terms."""
        return sum(self.commitments.width(t) for t in self.lefts)

    @cached_property
    def rights(self) -> tuple[int, ...]:
        """All operands that stand last in a table, in order."""
        return tuple(sorted({z for group in self.groups for z in group.lasts}))

    def columns(self, places: Iterable[int]) -> NDArray[np.intp]:
        """Return the columns of some operands among all columns of the study."""
        offsets, chosen = self.commitments.offsets, np.array(list(places), np.intp)
        return _ranges(offsets[chosen], offsets[chosen + 1])

    def lefts_at(self, lead: Party) -> list[Term]:
        """Return the left terms that are multiplied with a last operand led by `lead`."""
        return self._lefts_by_lead.get(lead, [])

    @cached_property
    def _lefts_by_lead(self) -> dict[Party, list[Term]]:
        leads = {lead for found in self._leads.values() for lead in found}
        return {lead: [t for t in self.lefts if lead in self._leads[t]] for lead in leads}

    def rows_of(self, terms: Iterable[Term]) -> NDArray[np.intp]:
        """Return the stacked rows of some terms."""
        rows = [self.rows[t] for t in terms]
        starts, stops = ([row.start for row in rows], [row.stop for row in rows])
        return _ranges(np.array(starts, np.intp), np.array(stops, np.intp))

    def dealt_to(self, lead: Party) -> list[Term]:
        """Return the left terms whose products at `lead` need a correction from the dealer."""
        shared = self._sharers(lead)
        return [t for t in self.lefts_at(lead) if {*self.commitments.holders(t), *shared} != {lead}]

    def rights_at(self, lead: Party) -> list[int]:
        """Return the last operands that `lead` counts with."""
        return self._rights_by_lead.get(lead, [])

    @cached_property
    def _rights_by_lead(self) -> dict[Party, list[int]]:
        found: dict[Party, list[int]] = {}
        for z in self.rights:
            found.setdefault(self.lead_of(z), []).append(z)
        return found

    # ---- what is sent ----------------------------------------------------------------------------

    @cached_property
    def receivers(self) -> dict[Term, set[Party]]:
        """Who is sent each masked term of several operands, in the order of extension."""
        needed: dict[Term, set[Party]] = {
            term: {site for lead in leads for site in self._strangers(term, self._sharers(lead))}
            for term, leads in self._leads.items()
        }
        for term in sorted(self.lefts, key=lambda t: -len(t)):
            self._require(term, needed)
        order = sorted(needed, key=lambda t: (self._level(t), len(t), t))
        return {t: needed[t] - {self.commitments.lead(t)} for t in order if len(t) > 1}

    def _sharers(self, lead: Party) -> tuple[Party, ...]:
        """Return all holders of the last operands that `lead` counts with."""
        return self.commitments.holders(tuple(self.rights_at(lead)))

    def _strangers(self, term: Term, others: tuple[Party, ...]) -> tuple[Party, ...]:
        """Who must know the masked `term` to multiply it by what `others` hold."""
        return () if self.commitments.holders(term) == others and len(others) == 1 else others

    def _require(self, term: Term, needed: dict[Term, set[Party]]) -> None:
        """Note who needs the two parts that a term is put together from."""
        if self.commitments.is_local(term) or len(term) == 1:
            return
        left, right = self.commitments.split(term)
        for part, other in ((left, right), (right, left)):
            others = self.commitments.holders(other)
            needed.setdefault(part, set()).update(self._strangers(part, others))
            self._require(part, needed)

    def _level(self, term: Term) -> int:
        return len(self.commitments.shape(term).parts) - 1

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The rounds of extension of a block, in order; each says who sends which terms to whom."""
        levels: dict[int, list[Term]] = {}
        for term in self.receivers:
            levels.setdefault(self._level(term), []).append(term)
        steps: list[Step] = []
        for level in sorted(levels):
            steps += [self._parts(levels[level])] if level else []
            steps.append(self._results(levels[level]))
        return tuple(step for step in steps if step)

    def _parts(self, terms: list[Term]) -> Step:
        step: Step = {}
        for term in terms:
            lead = self.commitments.lead(term)
            for sender in (self.commitments.dealer, *self.commitments.holders(term)):
                if sender != lead:
                    step.setdefault((sender, lead), []).append(term)
        return step

    def _results(self, terms: list[Term]) -> Step:
        step: Step = {}
        for term in terms:
            for receiver in sorted(self.receivers[term]):
                step.setdefault((self.commitments.lead(term), receiver), []).append(term)
        return step

    @property
    def rounds(self) -> int:
        """Rounds of the query: those of extension for each block, the correction, the opening."""
        dealt = any(self.dealt_to(site) for site in self.parties)
        return len(self.steps) * len(self.selection.blocks) + dealt + 1

    # ---- what is opened --------------------------------------------------------------------------

    def states(self, place: int) -> int:
        """Return the length of an operand's axis in the opened tables."""
        op = self.commitments.operands[place]
        return op.width + 1 - (op.missing and not self.missing)

    def shape(self, group: Group) -> tuple[int, int]:
        """Return (cells of the prefix, states of all last operands) of a group's opened cells."""
        prefix = int(np.prod([self.states(i) for i in group.prefix], dtype=np.int64))
        return prefix, sum(self.states(z) for z in group.lasts) if group.lasts else 1

    @cached_property
    def cells(self) -> int:
        """The number of opened cells."""
        return sum(a * b for a, b in map(self.shape, self.groups))

    @cached_property
    def name(self) -> bytes:
        """A digest of all that is asked: part of every label but those of committed columns."""
        parts: list[bytes | int] = [
            self.commitments.context,
            self.number,
            self.selection.name,
            int(self.missing),
        ]
        for prefix, lasts in self.groups:
            parts += [len(prefix), *prefix, len(lasts), *lasts]
        return label("query", *parts)
