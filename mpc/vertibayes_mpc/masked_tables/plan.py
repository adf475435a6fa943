"""From a query to messages: which terms are extended where, and who sends what to whom.

Every party makes the same plan from the same public query.

Examples
--------
Sites P, Q and R each hold a column of two states, of the same four records. The analyst asks how
often each combination of states occurs. P's and Q's columns are the prefix, R's is the last.

>>> from vertibayes_mpc.commitments import Operand
>>> from vertibayes_mpc.ring import Ring
>>> columns = tuple(Operand(name.encode(), 1, (name,)) for name in "PQR")
>>> commitments = Commitments(b"an example", Ring(4), 4, columns)
>>> plan = Plan(commitments, (Group(prefix=(0, 1), lasts=(2,)),), Selection(commitments))

R multiplies its column by P's column, by Q's, and by their product, the term (0, 1). P and the
dealer send Q their parts of this term; Q adds them up and sends the masked term to R.

>>> plan.lefts
((0,), (1,), (0, 1))
>>> plan.steps
({('dealer', 'Q'): [(0, 1)], ('P', 'Q'): [(0, 1)]}, {('Q', 'R'): [(0, 1)]})
>>> plan.cells, plan.rounds  # 2 * 2 * 2; two steps, the correction, the shares
(8, 4)

With numbers, modulo 16. Commit: each site sends its column under its mask.

>>> x, y, z = np.array([1, 0, 1, 1]), np.array([1, 1, 0, 1]), np.array([0, 1, 1, 1])
>>> a, b, c = np.array([5, 9, 2, 14]), np.array([3, 8, 1, 7]), np.array([6, 0, 4, 12])
>>> xhat, yhat, zhat = (x + a) % 16, (y + b) % 16, (z + c) % 16

Extend: the term's masks t_P, t_Q and P's part of the correction, d, are streams too.

>>> t_P, t_Q, d = np.array([1, 2, 3, 4]), np.array([7, 7, 0, 9]), np.array([4, 11, 8, 2])
>>> from_P, from_dealer = (-a * yhat + d + t_P) % 16, (a * b - d) % 16
>>> that = (xhat * y + from_P + from_dealer + t_Q) % 16  # Q's result
>>> (that - t_P - t_Q) % 16  # x y, which nobody computes
array([1, 0, 0, 1])

Table: the shares of the number of records with x = y = z = 1; P and Q add their streams.

>>> c_P, c_Q = 13, 6
>>> of_P, of_Q = (-t_P @ zhat + c_P) % 16, (-t_Q @ zhat + c_Q) % 16
>>> of_R = (that @ z + (t_P + t_Q) @ c - c_P - c_Q) % 16  # the dealer sends all but that @ z
>>> int((of_P + of_Q + of_R) % 16), int((x * y) @ z)
(1, 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.commitments import Commitments, Selection, Term
from vertibayes_mpc.commitments.columns import column_mask
from vertibayes_mpc.randomness import Stream, label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party

STEP_BYTES = 1 << 22  # of one message of an extension, unless one term alone takes more

Step: TypeAlias = dict[tuple[Party, Party], list[Term]]  # (sender, receiver) -> terms, in order

At: TypeAlias = tuple[slice, NDArray[np.intp]]  # rows and columns of products


class Group(NamedTuple):
    """The tables of one prefix with each of several last operands, or the prefix's own table."""

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

    Masks are for one query: a site that uses a mask again on other columns would send a difference
    that shows its own masks. A ValueError says that an operand appears twice in a table or is
    unknown, or that a group is not valid.
    """

    commitments: Commitments
    groups: tuple[Group, ...]  # the tables
    selection: Selection  # the records that are counted
    missing: bool = False  # whether the cells of missing values are revealed too
    number: int = 0  # of the query, ascending
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
            raise ValueError(f"an operand of {group} was not committed")
        twice = len(set(group.prefix)) < len(group.prefix) or set(group.prefix) & set(group.lasts)
        if not group.prefix or twice or len(set(group.lasts)) < len(group.lasts):
            raise ValueError(f"a group must have a prefix, and operands only once, got {group}")
        if len(group.prefix) > 1 and not group.lasts:
            raise ValueError(f"a table of several operands must have a last one, got {group}")
        if not all(self.commitments.operands[i].narrow for i in (*group.prefix, *group.lasts)):
            raise ValueError(f"an operand of {group} is committed without indicators")

    def lead_of(self, place: int) -> Party:
        """Return the site that multiplies by an operand as the last: its first holder."""
        return self.commitments.operands[place].holders[0]

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """The sites that take part, sorted: those that hold an operand of a table."""
        asked = {i for group in self.groups for i in (*group.prefix, *group.lasts)}
        return tuple(sorted({h for i in asked for h in self.commitments.operands[i].holders}))

    @cached_property
    def lefts(self) -> tuple[Term, ...]:
        """All terms that are the left factor of a product, in order."""
        return tuple(sorted(self._leads, key=lambda term: (len(term), term)))

    @cached_property
    def rights(self) -> tuple[int, ...]:
        """All operands that are the last of a table, in order."""
        return tuple(sorted({z for group in self.groups for z in group.lasts}))

    @property
    def rounds(self) -> int:
        """The rounds of the query: the steps for each block, the correction, the shares."""
        dealt = any(self.dealt_to(site) for site in self.parties)
        return len(self.steps) * len(self.selection.blocks) + dealt + 1

    @cached_property
    def receivers(self) -> dict[Term, set[Party]]:
        """Who receives each masked term of several operands, in the order of extension."""
        needed: dict[Term, set[Party]] = {
            term: {site for lead in leads for site in self._strangers(term, self._sharers(lead))}
            for term, leads in self._leads.items()
        }
        for term in sorted(self.lefts, key=lambda t: -len(t)):
            self._require(term, needed)
        order = sorted(needed, key=lambda t: (self._level(t), len(t), t))
        return {t: needed[t] - {self.commitments.lead(t)} for t in order if len(t) > 1}

    def _sharers(self, lead: Party) -> tuple[Party, ...]:
        """Return all holders of the last operands by which `lead` multiplies."""
        return self.commitments.holders(tuple(self.rights_at(lead)))

    def _strangers(self, term: Term, others: tuple[Party, ...]) -> tuple[Party, ...]:
        """Who must know the masked `term` to multiply it by what `others` hold."""
        return () if self.commitments.holders(term) == others and len(others) == 1 else others

    def _require(self, term: Term, needed: dict[Term, set[Party]]) -> None:
        """Note who needs the two parts from which a term is computed."""
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
        """The rounds of extension of a block, in order: who sends which terms to whom."""
        levels: dict[int, list[Term]] = {}
        for term in self.receivers:
            levels.setdefault(self._level(term), []).append(term)
        steps: list[Step] = []
        for level in sorted(levels):
            for terms in self._pieces(levels[level]):
                steps += [self._parts(terms)] if level else []
                steps.append(self._results(terms))
        return tuple(step for step in steps if step)

    def _pieces(self, terms: list[Term]) -> list[list[Term]]:
        """Divide terms so that no party holds large messages to all others at a time."""
        rows = min(self.commitments.block_rows, self.selection.records)
        most = STEP_BYTES // max(rows * self.commitments.ring.dtype.itemsize, 1)
        pieces, width = list[list[Term]](), 0
        for term in terms:
            width += self.commitments.width(term)
            if not pieces or width > most:
                pieces.append([])
                width = self.commitments.width(term)
            pieces[-1].append(term)
        return pieces

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

    def columns(self, places: Iterable[int]) -> NDArray[np.intp]:
        """Return the columns of some operands among all columns of the study."""
        offsets, chosen = self.commitments.offsets, np.array(list(places), np.intp)
        return _ranges(offsets[chosen], offsets[chosen + 1])

    def lefts_at(self, lead: Party) -> list[Term]:
        """Return the left terms that `lead` multiplies by a last operand."""
        return self._lefts_by_lead.get(lead, [])

    def lefts_of(self, leads: set[Party]) -> list[Term]:
        """Return the left terms that at least one of some leads multiplies by a last operand."""
        return [term for term in self.lefts if not leads.isdisjoint(self._leads[term])]

    @cached_property
    def _lefts_by_lead(self) -> dict[Party, list[Term]]:
        leads = {lead for sites in self._leads.values() for lead in sites}
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

    def corrected(self, term: Term, site: Party) -> list[int]:
        """Return the last operands whose products at other sites a site's stream corrects."""
        leads = sorted(self._leads[term] - {site})
        places = [z for lead in leads for z in self.rights_at(lead)]
        if site in self.commitments.holders(term):
            return places
        return [z for z in places if site in self.commitments.operands[z].holders]

    def rights_at(self, lead: Party) -> list[int]:
        """Return the last operands by which `lead` multiplies."""
        return self._rights_by_lead.get(lead, [])

    @cached_property
    def _rights_by_lead(self) -> dict[Party, list[int]]:
        rights: dict[Party, list[int]] = {}
        for z in self.rights:
            rights.setdefault(self.lead_of(z), []).append(z)
        return rights

    def states(self, place: int) -> int:
        """Return the length of an operand's axis in the revealed tables."""
        op = self.commitments.operands[place]
        return op.width + 1 - (op.missing and not self.missing)

    def shape(self, group: Group) -> tuple[int, int]:
        """Return (cells of the prefix, states of all last operands) of a group's revealed cells."""
        prefix = int(np.prod([self.states(i) for i in group.prefix], dtype=np.int64))
        return prefix, sum(self.states(z) for z in group.lasts) if group.lasts else 1

    @cached_property
    def cells(self) -> int:
        """The number of revealed cells."""
        return sum(a * b for a, b in map(self.shape, self.groups))

    @cached_property
    def label(self) -> bytes:
        """A digest of the query: part of every label, except those of committed columns."""
        query = self.commitments.label, self.number, self.selection.name, int(self.missing)
        parts: list[bytes | int] = [*query]
        for prefix, lasts in self.groups:
            parts += [len(prefix), *prefix, len(lasts), *lasts]
        return label("query", *parts)


@dataclass(frozen=True)
class Masks:
    """The streams of one site, for the records of one selection."""

    commitments: Commitments
    key: Stream
    selection: Selection
    query: bytes = b""

    def committed(self, place: int, block: int) -> Elements:
        """Return the mask of an operand's indicators in a committed block: shape (width, rows)."""
        form = self.commitments.form("indicators", place)
        return column_mask(self.commitments, self.key, form, place, block)

    def of(self, term: Term, block: int) -> Elements:
        """Return the mask of a term in a block of the selection: shape (width, rows)."""
        if len(term) == 1:
            return self.selection.gather(lambda at: self.committed(term[0], at), block)
        return self._extension("remask", term, block)

    def correction(self, term: Term, block: int) -> Elements:
        """Return D_s, the site's part of the correction of an extension: shape (width, rows)."""
        return self._extension("extend", term, block)

    def table_correction(self, term: Term) -> Elements:
        """Return C_s, the part of the correction of products with all columns of the study."""
        shape = self.commitments.width(term), int(self.commitments.offsets[-1])
        return self.key.elements(self.commitments.ring, self._label("table", term), shape)

    def table_corrections(self, plan: Plan, site: Party) -> Iterator[tuple[At, Elements]]:
        """Yield the site's parts of the corrections of all products, and their places."""
        for term in plan.lefts:
            if places := plan.corrected(term, site):
                columns = plan.columns(places)
                yield (plan.rows[term], columns), self.table_correction(term)[:, columns]

    def _extension(self, purpose: str, term: Term, block: int) -> Elements:
        width = self.commitments.width(term)
        shape = (width, self.selection.rows(block))
        start = block * self.commitments.block_rows * width
        return self.key.elements(self.commitments.ring, self._label(purpose, term), shape, start)

    def _label(self, purpose: str, term: Term) -> bytes:
        return label(purpose, self.query, np.array(term, "<u4").tobytes())
