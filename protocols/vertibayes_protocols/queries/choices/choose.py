"""Choose: which candidate of each set has the highest score, without revealing any table.

    sites, dealer    shares of the cells of all tables          vertibayes_mpc.masked_tables
    sites, dealer    shares of logarithms of the counts         vertibayes_mpc.lookups
    each site        its shares of their sums, which it keeps   or kept in an earlier query
    each site        its shares of the candidates' values       sums
    sites, dealer    the winner of each set, and whether the errors of the lookups are too small
                     to change it                               vertibayes_mpc.argmax

A site first checks the query against its policy and its memory of record sets, and notes it in its
ledger.

Security: honest-but-curious, that of `vertibayes_mpc.masked_tables`, `vertibayes_mpc.lookups` and
`vertibayes_mpc.argmax`: no party has more than random shares of a table of which it does not hold
all columns, of a score, or of a comparison. Holders of all columns of a table know its counts
anyway. A share that is kept is used again without being sent: it is added to others, and what is
sent of the value has masks and zero shares of the later query. It stays in the memory of the
session. Leakage: to the analyst and to all sites of the study the winner of each set, and one bit:
whether it exceeds all others by so much that the errors of the lookups cannot have changed it.
Which scores are compared, over which records, to all parties. The dealer does not learn the
winners. Cost: as the tables; a lookup for each count (`vertibayes_mpc.lookups`); three comparisons
for each pair of candidates of a set (`vertibayes_mpc.argmax`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from math import ceil
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.argmax import ArgmaxPlan, Won, argmax, deal_argmax, open_argmax
from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.lookups import LookupPlan, deal_lookups
from vertibayes_mpc.masked_tables import Plan, deal_tables
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Program
from vertibayes_protocols import wire
from vertibayes_protocols.choices import (
    Candidate,
    Choices,
    Constant,
    Score,
    ScoreKind,
    bits_of,
    constant_of,
    constants_last,
    scores_of,
)
from vertibayes_protocols.effects import Effects, Later, Number, Planned, Winners
from vertibayes_protocols.ledger import Fact
from vertibayes_protocols.queries.choices.lookups import (
    MOST_SCORES,
    ChoiceLookups,
    choice_lookups,
    lookups_beside,
)
from vertibayes_protocols.queries.choices.scored_tables import Kept
from vertibayes_protocols.queries.tables.masked import look_up_held, plan_products, share_parts
from vertibayes_protocols.queries.tables.masked_costs import most_kept
from vertibayes_protocols.query import (
    At,
    Give,
    StudyQuery,
    check_each_once,
    check_most,
    check_places,
    check_variables,
    numbered,
    numbers,
)
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.study import Joined, Study
from vertibayes_protocols.variables import Family, Rows

T = TypeVar("T")
LEAST_WEIGHT = 10**13  # picoseconds of work: choices of less are one query,
MOST_PARTS = 8  # and choices of more are divided into about so many
COMPARED = "which scores are compared, over which records"


@dataclass(frozen=True)
class ChoicePlan:
    """All that the parties do for one query."""

    needed: ChoiceLookups  # what is looked up
    joined: Joined  # the study, and its commitments
    rows: Rows  # the records that are counted
    missing: bool  # whether a missing value is a state
    number: int  # the number of the query in the study
    query: bytes  # a digest of the query
    kept: Mapping[Kept, int] = field(repr=False)  # this party's shares of earlier sums

    @cached_property
    def label(self) -> bytes:
        """Names the query and the commitments, whose ids are new in each session."""
        return label("choose", self.joined.commitments.label, self.asked)

    @cached_property
    def asked(self) -> bytes:
        """Names the query, and which of its sums this party takes from earlier queries."""
        known = np.array(sorted(self.needed.tables.known), "<u4")
        return label("asked", self.query, known.tobytes())

    @cached_property
    def products(self) -> tuple[Plan, ...]:
        """The plans of the tables, part after part."""
        asked = self.rows, self.missing, self.number
        return tuple(plan_products(self.joined, part, *asked) for part in self.needed.parts)

    @cached_property
    def lookups(self) -> LookupPlan:
        """The plan of the lookups."""
        return self.needed.lookups(self.label)

    @cached_property
    def argmax(self) -> ArgmaxPlan:
        """The plan of the argmax; the analyst, who does not know the ids, checks what is asked."""
        return self.needed.argmax(self.label, self.asked)

    def keep(self, sums: Elements | None = None) -> None:
        """Keep the sums that are known from now on: a site its shares of them, others zeros."""
        keys, held = self.needed.tables.keys, self.joined.sums
        most = most_kept(self.joined.study)
        if sum(map(len, held.values())) + len(keys) <= most:  # at all parties or at none
            shares = [0] * len(keys) if sums is None else sums.tolist()
            of_records = held.setdefault((self.rows, self.missing), {})
            of_records |= zip(keys, shares, strict=True)


@dataclass(frozen=True, slots=True)
class Choose(StudyQuery[tuple[int, ...], ChoicePlan]):
    """Ask which candidates win: in arrays, because there may be many."""

    kind: ClassVar[str] = "choose"
    is_dealt: ClassVar[bool] = True
    variables: tuple[str, ...]
    members: NDArray[np.uint32]  # places in `variables` of each score's family, then of its others
    families: NDArray[np.uint32]  # how many of a score's members are its family,
    withins: NDArray[np.uint32]  # and how many are further variables
    signs: NDArray[np.int64]  # whether a score is added (1) or subtracted (-1)
    candidates: NDArray[np.uint32]  # how many scores each candidate has
    sets: NDArray[np.uint32]  # how many candidates each set has
    constants: NDArray[np.int64]  # what is added to each candidate, in millionths of a nat
    score: ScoreKind
    missing: bool  # whether a missing value is a state
    rows: Rows

    @classmethod
    def of(cls, joined: Joined, choices: Choices) -> Choose:
        """Return the next query of a study; the choices fit into one query (`portions`)."""
        joined.asked += 1
        candidates = list(chain.from_iterable(choices.sets))
        scores = list(chain.from_iterable(map(scores_of, candidates)))
        members = [(*score.family.members, *score.within) for score in scores]
        places = numbered(members)
        return cls(
            parties=joined.study.parties,
            study=joined.study.id,
            number=joined.asked,
            variables=tuple(places),
            members=numbers(places[name] for name in chain.from_iterable(members)),
            families=numbers(len(score.family.members) for score in scores),
            withins=numbers(len(score.within) for score in scores),
            signs=np.array([score.sign for score in scores], np.int64),
            candidates=numbers(len(scores_of(candidate)) for candidate in candidates),
            sets=numbers(map(len, choices.sets)),
            constants=np.array([constant_of(candidate) for candidate in candidates], np.int64),
            score=choices.score,
            missing=choices.missing,
            rows=choices.rows.whole,
        )

    def __post_init__(self) -> None:
        check_each_once(self.variables)
        check_places(self.members, self.variables)
        lengths = self.families, self.withins, self.candidates, self.sets
        if any(array.ndim != 1 for array in (*lengths, self.signs, self.constants)):
            raise ValueError("scores, candidates and sets must be lists")
        if (np.abs(self.signs) != 1).any():
            raise ValueError("the sign of a score must be 1 or -1")
        if not len(self.signs) == len(self.families) == len(self.withins):
            raise ValueError("each score must have a sign and two lengths")
        members, within, scores, candidates = (int(a.sum(dtype=np.uint64)) for a in lengths)
        counted = members + within, scores, candidates
        if counted != (len(self.members), len(self.signs), len(self.candidates)):
            raise ValueError("the lengths of scores, candidates and sets must fit the arrays")
        if len(self.constants) != len(self.candidates):
            raise ValueError("each candidate must have a constant")
        if not self.families.all():
            raise ValueError("a family must have a child")
        for what, array in (("scores", self.signs), ("sets", self.sets)):
            check_most(what, len(array), MOST_SCORES)
        check_most("candidates", len(self.candidates), MOST_SCORES)

    @property
    def step(self) -> Choices:
        """What is asked, in the form of `constants_last`."""
        names = [self.variables[place] for place in self.members.tolist()]
        scores = _cut(self._scores(names), self.candidates)
        candidates = map(_with_constant, scores, self.constants.tolist())
        return Choices(tuple(_cut(candidates, self.sets)), self.missing, self.rows, self.score)

    def _scores(self, names: list[str]) -> Iterator[Score]:
        at = 0
        lengths = zip(self.families.tolist(), self.withins.tolist(), strict=True)
        for (members, within), sign in zip(lengths, self.signs.tolist(), strict=True):
            child, *parents = names[at : at + members]
            at += members + within
            yield Score(Family(child, tuple(parents)), tuple(names[at - within : at]), sign)

    def plan(self, at: At) -> ChoicePlan:
        """Return the plan; a ValueError if the choices do not fit the study."""
        joined = self.joined(at)
        check_variables(joined.study, self.variables)
        kept = joined.sums.get((self.rows, self.missing), {})
        needed = lookups_beside(joined.study, self.step, frozenset(kept))
        digest = label("choose", wire.encode(self))
        return ChoicePlan(needed, joined, self.rows, self.missing, self.number, digest, kept)

    def effects(self, plan: ChoicePlan, at: At) -> Effects:
        """Return the effects: winners, to the analyst and to all sites."""
        study = plan.joined.study
        over = "" if self.rows == Rows() else f", over {self.rows}"
        sets = "1 set" if len(self.sets) == 1 else f"{len(self.sets)} sets"
        bits = bits_of(self.sets.tolist())
        what = (
            f"which of {len(self.candidates)} candidates win, and whether narrowly, in "
            f"{sets}{over}: at most {bits:.0f} bits"
        )
        winners = [
            Fact(what, site, (at.analyst, *(other for other in study.sites if other != site)))
            for site in at.shown_by(study.sites)
        ]
        asked = self.parties if at.party == at.analyst else ()
        return Effects(
            asks=study.parties,
            columns=(),
            tables=tuple(plan.needed.tables.table_sizes),
            counts=self.rows,
            takes=Later(partial(_takes, plan)),
            number=Number(self.number),
            leaves=Winners(ceil(bits)),
            says=(*winners, *(Fact(COMPARED, at.analyst, (party,)) for party in asked)),
            opens=(),
        )

    def run_site(self, site: SiteRole, plan: ChoicePlan, give: Give) -> Program[None]:
        """Share the tables, look logarithms up, compare the sums, and keep the winners."""
        joined, holder = site.joined, site.holder
        assert joined is not None and holder is not None  # it has joined the study
        holder.begin("choose", plan.number)
        shares = yield from share_parts(holder, plan.products)
        sums = yield from _sums(holder, plan, shares)
        plan.keep(sums)
        values = plan.needed.values(site.party, sums)
        _note(joined, (yield from argmax(holder, plan.argmax, values, site.analyst)))

    def run_dealer(self, dealer: DealerRole, plan: ChoicePlan) -> Program[None]:
        """Deal what tables, lookups and comparisons need."""
        for part in plan.products:
            yield from deal_tables(dealer.mask_keys, part)
        yield from deal_lookups(dealer.mask_keys, plan.lookups)
        plan.keep()
        yield from deal_argmax(dealer.mask_keys, plan.argmax)

    def run_analyst(self, analyst: AnalystRole, plan: ChoicePlan) -> Program[tuple[int, ...]]:
        """Receive the winners, and which of them are decided."""
        assert analyst.joined is not None  # it has joined the study
        _note(analyst.joined, (yield from open_argmax(plan.argmax)))
        plan.keep()
        return analyst.joined.won


def _note(joined: Joined, won: Won) -> None:
    """Remember the winners, and which of them are those of exact scores too."""
    joined.won, joined.decided = tuple(won.places.tolist()), tuple(won.leads.tolist())


def _sums(site: Holder, plan: ChoicePlan, shares: Elements) -> Program[Elements]:
    """Return this site's shares of the sums of all lookups."""
    mine = {held: c for held, c in plan.needed.counts.items() if site.party in held}
    counts = {held: c.of(shares) for held, c in mine.items()}
    known = partial(plan.needed.alone, site.party)
    logarithms = yield from look_up_held(site, plan.lookups, counts, known)
    sums = np.zeros(len(plan.needed.tables.lookups), np.uint64)
    for place, key in enumerate(plan.needed.tables.keys):
        sums[place] = plan.kept.get(key, 0)
    for held, of_counts in logarithms.items():
        sums[mine[held].lookups] = np.add.reduceat(of_counts, mine[held].begins)
    return sums


def _takes(plan: ChoicePlan) -> Iterator[Planned]:
    """Go through what choices take: tables first, before functions are made."""
    plan.needed.check_sizes()
    yield plan.needed.counted
    yield plan.needed.planned


def _cut(items: Iterator[T], lengths: NDArray[np.uint32]) -> Iterator[tuple[T, ...]]:
    """Cut items into tuples of these lengths."""
    return (tuple(islice(items, length)) for length in lengths.tolist())


def _with_constant(scores: tuple[Score, ...], millionths: int) -> Candidate:
    return (*scores, Constant(millionths)) if millionths else scores


def portions(study: Study, choices: Choices) -> list[Choices]:
    """Divide sets of candidates into queries that fit the memory of a study.

    A query also has no more than an eighth of the predicted time of all, unless that is short or a
    set takes longer: a session that breaks loses one query. All parties divide equal choices
    equally.
    """
    if not choices.sets:
        return []
    choices = constants_last(choices)
    most = max(LEAST_WEIGHT, choice_lookups(study, choices).planned.picoseconds // MOST_PARTS)
    return list(_portions(study, choices, most))


def _portions(study: Study, choices: Choices, most: int) -> Iterator[Choices]:
    """Halve sets until each part fits and takes no longer than `most`."""
    needed, half = choice_lookups(study, choices), len(choices.sets) // 2
    if not half:
        needed.check_fits()
    if not half or (needed.fits and needed.planned.picoseconds <= most):
        yield choices
        return
    for sets in (choices.sets[:half], choices.sets[half:]):
        yield from _portions(study, replace(choices, sets=sets), most)


def score_error(study: Study, choices: Choices) -> float:
    """Return the most, in nats, by which the value of a candidate differs from its scores.

    A score adds up approximate logarithms: one for each cell of its table, and for each of its
    columns two, or one in a likelihood. Each is at most `error`
    (`vertibayes_mpc.lookups.PublicFunction`) from its logarithm. Of two candidates whose scores
    differ by more than twice this number, the better one wins.
    """
    asked = portions(study, choices)
    return max((choice_lookups(study, portion).error for portion in asked), default=0.0)
