"""Choose: which candidate of each set has the highest score, without revealing any table.

The figure is that of `vertibayes_protocols.queries.choice_plan`. A site first checks the query
against its policy and its memory of record sets, and notes it in its ledger.

Security: honest-but-curious, that of `vertibayes_mpc.masked_tables`, `vertibayes_mpc.lookups` and
`vertibayes_mpc.argmax`: no party has more than random shares of a table of which it does not hold
all columns, of a score, or of a comparison. Holders of all columns of a table know its counts
anyway. Leakage: to the analyst and to all sites of the study the winner of each set, and one bit:
whether it exceeds all others by so much that the errors of the lookups cannot have changed it.
Which scores are compared, over which records, to all parties. The dealer does not learn the
winners. Cost: as the tables; a lookup for each count (`vertibayes_mpc.lookups`); a comparison for
each pair of candidates of a set (`vertibayes_mpc.argmax`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import ceil, log2
from operator import index
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Party, Program
from vertibayes_protocols import wire
from vertibayes_protocols.choices import (
    Candidate,
    Choices,
    Constant,
    Score,
    constant_of,
    constants_last,
    score_kind,
    scores_of,
)
from vertibayes_protocols.errors import refusing
from vertibayes_protocols.joined import Joined
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.choice_lookups import MOST_SCORES, choice_lookups
from vertibayes_protocols.queries.choice_plan import ChoicePlan, choose, deal_choices, open_choices
from vertibayes_protocols.queries.study_checks import (
    check_at_site,
    check_most,
    check_parties,
    check_places,
    check_planned,
    check_variables,
    joined_study,
    numbered,
    numbers,
    planned,
    remember_records,
)
from vertibayes_protocols.roles import AnalystRole, DealerRole, SiteRole
from vertibayes_protocols.session import Conversation, Query
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Family, Rows

T = TypeVar("T")

LEAST_WEIGHT = 10**13  # picoseconds of work: choices of less are one query,
MOST_PARTS = 8  # and choices of more are divided into about so many

COMPARED = "which scores are compared, over which records"


@dataclass(frozen=True, slots=True)
class Choose(Query[tuple[int, ...]]):
    """Ask which candidates win.

    Parameters
    ----------
    study : bytes
        The id of the study.
    variables : tuple of str
        The variables of the scores.
    members : ndarray of dtype uint32
        The places in `variables` of each score's child, parents and further variables.
    families, withins : ndarray of shape (scores,), dtype uint32
        How many of a score's members are its family, and how many are further variables.
    signs : ndarray of shape (scores,), dtype int64
        Whether a score is added (1) or subtracted (-1).
    candidates : ndarray of dtype uint32
        How many scores each candidate has.
    sets : ndarray of dtype uint32
        How many candidates each set has.
    constants : ndarray of shape (candidates,), dtype int64
        What is added to each candidate, in millionths of a nat.
    score : str
        "k2" or "likelihood".
    missing : bool
        Whether a missing value is a state.
    seed, first, last : int
        The records (`Rows`); last = -1 for all records from the first on.
    number : int
        The number of the query, above all earlier ones in the study: masks are used once.
    """

    kind: ClassVar[str] = "choose"
    study: bytes
    variables: tuple[str, ...]
    members: NDArray[np.uint32]
    families: NDArray[np.uint32]
    withins: NDArray[np.uint32]
    signs: NDArray[np.int64]
    candidates: NDArray[np.uint32]
    sets: NDArray[np.uint32]
    constants: NDArray[np.int64]
    score: str
    missing: bool
    seed: int
    first: int
    last: int
    number: int

    @classmethod
    def of(cls, joined: Joined, choices: Choices) -> Choose:
        """Return the next query of a study.

        Parameters
        ----------
        joined : Joined
            The study, and the number of its queries so far.
        choices : Choices
            What is asked; they fit into one query (`portions`).
        """
        joined.asked += 1
        candidates = list(chain.from_iterable(choices.sets))
        scores = list(chain.from_iterable(map(scores_of, candidates)))
        members = [(*score.family.members, *score.within) for score in scores]
        places = numbered(members)
        return cls(
            parties=joined.study.parties,
            study=joined.study.id,
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
            seed=index(choices.rows.seed),
            first=index(choices.rows.first),
            last=-1 if choices.rows.last is None else index(choices.rows.last),
            number=joined.asked,
        )

    @property
    def rows(self) -> Rows:
        """The records."""
        return Rows(self.seed, self.first, None if self.last < 0 else self.last)

    @property
    def choices(self) -> Choices:
        """What is asked, in the form of `constants_last`.

        Raises
        ------
        ValueError
            If the arrays do not describe choices.
        """
        self._check()
        names = [self.variables[place] for place in self.members.tolist()]
        scores = _cut(self._scores(names), self.candidates)
        candidates = map(_with_constant, scores, self.constants.tolist())
        sets = tuple(_cut(candidates, self.sets))
        return Choices(sets, self.missing, self.rows, score_kind(self.score))

    def _scores(self, names: list[str]) -> Iterator[Score]:
        at = 0
        lengths = zip(self.families.tolist(), self.withins.tolist(), strict=True)
        for (members, within), sign in zip(lengths, self.signs.tolist(), strict=True):
            child, *parents = names[at : at + members]
            at += members + within
            yield Score(Family(child, tuple(parents)), tuple(names[at - within : at]), sign)

    def _check(self) -> None:
        """Refuse arrays of wrong types or lengths, before anything is made of them."""
        check_places(self.members, self.variables)
        lengths = self.families, self.withins, self.candidates, self.sets
        if any(a.ndim != 1 or a.dtype != np.uint32 for a in lengths):
            raise ValueError("the lengths of scores, candidates and sets must be whole numbers")
        if self.signs.dtype != np.int64 or (np.abs(self.signs) != 1).any():
            raise ValueError("the sign of a score must be 1 or -1")
        if not self.signs.shape == self.families.shape == self.withins.shape:
            raise ValueError("each score must have a sign and two lengths")
        members, within, scores, candidates = (int(a.sum(dtype=np.uint64)) for a in lengths)
        counted = members + within, scores, candidates
        if counted != (len(self.members), len(self.signs), len(self.candidates)):
            raise ValueError("the lengths of scores, candidates and sets must fit the arrays")
        if self.constants.shape != self.candidates.shape or self.constants.dtype != np.int64:
            raise ValueError("each candidate must have a constant, a whole number")
        if not self.families.all():
            raise ValueError("a family must have a child")


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

    Parameters
    ----------
    study : Study
    choices : Choices

    Raises
    ------
    ValueError
        If a set of candidates does not fit into one query; the message names its largest table.
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

    Parameters
    ----------
    study : Study
    choices : Choices
    """
    asked = portions(study, choices)
    return max((choice_lookups(study, portion).error for portion in asked), default=0.0)


# ---- checks --------------------------------------------------------------------------------------


def _plan(joined: Joined, query: Choose) -> ChoicePlan:
    return planned(joined, query, ChoicePlan, lambda: _make_plan(joined, query, query.choices))


def _make_plan(joined: Joined, query: Choose, choices: Choices) -> ChoicePlan:
    return ChoicePlan(
        choice_lookups(joined.study, choices),
        joined.commitments,
        joined.selection(query.rows),
        query.missing,
        query.number,
        label("choose", wire.encode(query)),
    )


def _check(party: Party, policy: Policy, joined: Joined | None, query: Choose) -> ChoicePlan:
    """Return the plan of a query, or refuse the query: sizes are checked before it is planned."""
    joined = joined_study(party, joined, query)
    policy.check_records(party, query.rows, joined.study.records)
    check_parties(party, query, joined.study.parties)
    with refusing(party):
        check_variables(joined.study, query.variables)
        check_most("scores", len(query.families), MOST_SCORES)
        check_most("sets", len(query.sets), MOST_SCORES)
        check_most("candidates", len(query.candidates), MOST_SCORES)
        plan = _plan(joined, query)
        policy.check_tables(party, plan.needed.tables.table_sizes)
        plan.needed.check_sizes()
        check_planned(party, policy, plan.needed.counted)  # before functions are made
        check_planned(party, policy, plan.needed.planned)
    return plan


def _consider_at_site(site: SiteRole, query: Choose) -> None:
    _check(site.party, site.policy, site.joined, query)
    check_at_site(site, query)
    if site.run is not None:
        site.policy.check_chosen(site.party, site.memory.chosen, ceil(_bits(query)))


def _consider_at_dealer(dealer: DealerRole, query: Choose) -> None:
    _check(dealer.party, dealer.policy, dealer.joined, query)


# ---- programs ------------------------------------------------------------------------------------


def _bits(query: Choose) -> float:
    """Return how many bits the winners have at most, with one that says whether each is narrow."""
    return sum(1 + log2(size) for size in query.sets.tolist())


def _note(ledger: Ledger, query: Choose, site: Party, sites: tuple[Party, ...], to: Party) -> None:
    """Note what is revealed of a site's columns."""
    over = "" if query.rows == Rows() else f", over {query.rows}"
    sets = "1 set" if len(query.sets) == 1 else f"{len(query.sets)} sets"
    what = (
        f"which of {len(query.candidates)} candidates win, and whether narrowly, in "
        f"{sets}{over}: at most {_bits(query):.0f} bits"
    )
    ledger.note(what, site, (to, *(party for party in sites if party != site)))


def _site(site: SiteRole, query: Choose) -> Program[None]:
    assert site.joined is not None and site.holder is not None  # considered
    plan, sites = _plan(site.joined, query), site.joined.study.sites
    remember_records(site, query.rows)
    if site.run is not None:
        site.memory.choose(ceil(_bits(query)))
    _note(site.ledger, query, site.party, sites, site.analyst)
    site.joined.won, site.joined.decided = yield from choose(site.holder, plan, site.analyst)


def _dealer(dealer: DealerRole, query: Choose) -> Program[None]:
    assert dealer.joined is not None  # considered
    yield from deal_choices(dealer.mask_keys, _plan(dealer.joined, query))


def _analyst(analyst: AnalystRole, query: Choose) -> Program[tuple[int, ...]]:
    if analyst.joined is None:
        raise ValueError("the study must be committed before choices are asked for")
    plan = _plan(analyst.joined, query)
    chosen = yield from open_choices(plan)
    sites = analyst.joined.study.sites
    for site in sites:
        _note(analyst.ledger, query, site, sites, analyst.party)
    for party in query.parties:
        analyst.ledger.note(COMPARED, analyst.party, (party,))
    analyst.joined.won, analyst.joined.decided = chosen
    return chosen.won


CHOOSE = (
    Conversation(Choose, _analyst)
    .side(SiteRole, _consider_at_site, _site)
    .side(DealerRole, _consider_at_dealer, _dealer)
)
