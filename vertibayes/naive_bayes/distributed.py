"""HDPNB: naive Bayes over parties that each hold some of the records.

    Terms        all            schema, most parties and records, noise: agreed before any data
    Join, leave  analyst        members, their groups, u_k (`queries.sums.members`)
    Release      analyst <-> P_k    `Sums`: n_j^k and n_ij^k of each, plus noise, added up
    ResultDec    analyst        clamped once; class and feature shares: a model

`learn_sums` (`vertibayes.naive_bayes.releases`) asks one release of any session; `HDPNB` keeps a
study in one process that goes on from release to release. Security, leakage and cost are those of
`vertibayes_protocols.queries.sums.sums`.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.releases import Release, release_of
from vertibayes_protocols.budget import Cost
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import RecordFederation
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.promise import SumPromise
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.sums import Sums
from vertibayes_protocols.queries.sums.terms import Terms, Values, check_records
from vertibayes_protocols.site.statistics import LocalData


class _Spent(NamedTuple):
    """How many releases there were, and what they cost together."""

    releases: int = 0
    cost: Cost = Cost()

    def after(self, cost: Cost) -> _Spent:
        return _Spent(self.releases + 1, self.cost.plus(cost))

    @classmethod
    def most(cls, spent: Iterable[_Spent]) -> _Spent:
        """Return the most of each number: a bound for all."""
        each = [cls(), *spent]
        costs = zip(*(one.cost for one in each), strict=True)
        return cls(max(one.releases for one in each), Cost(*map(max, costs)))


@dataclass
class _Batch:
    """Records that a party brought at one time."""

    data: LocalData = field(repr=False)
    spent: _Spent = field(default_factory=_Spent)  # by the releases that they were in
    learned: bool = False  # whether the present model is of them


@dataclass
class _Holder:
    """What the study keeps of a party, as long as it is a member."""

    batches: list[_Batch]
    spent: _Spent = field(default_factory=_Spent)


class HDPNB:
    """A study that goes on from release to release, all parties in this process.

    Between machines, the analyst asks `learn_sums` of a session; the sites answer as here.

    Parameters
    ----------
    terms : Terms
        What is counted, over how many, with which noise.
    parties : mapping of str to LocalData
        Who is there at first: two at least. A party may have no records.
    via : {"additive", "masked"}, default="additive"
        How sums are taken.
    alpha : float, default=1.0
        As of `NaiveBayes`.
    federation : RecordFederation, optional
        The parties; one whose sites allow all that is asked, if None.

    Attributes
    ----------
    model_ : NaiveBayes
        Of the last release; scikit-learn's attributes.
    release_ : Release
        The last one: its sums and whose they are.
    promise_ : SumPromise or None
        Of the last release by itself; `spent` is of all.

    Raises
    ------
    ValueError
        If the parties are too few or too many, one has the analyst's name, or `gamma` of them is
        less than one.
    DataError
        If a party's records are not as declared; it is named.
    """

    model_: NaiveBayes
    release_: Release

    def __init__(
        self,
        terms: Terms,
        parties: Mapping[str, LocalData],
        *,
        via: str = "additive",
        alpha: float = 1.0,
        federation: RecordFederation | None = None,
    ) -> None:
        self.terms, self.alpha = terms, alpha
        self.promise_: SumPromise | None = None
        self._all_checked = True
        for party, data in parties.items():
            check_records(party, terms, [data])
        self.federation = federation or RecordFederation(parties, policy=ALLOW_ALL)
        self.members = Members(terms, parties, via, self.federation.randomness)
        self._holders = {party: _Holder([_Batch(data)]) for party, data in parties.items()}
        self._left: dict[str, _Holder] = {}

    @property
    def parties(self) -> tuple[str, ...]:
        """The members, sorted."""
        return self.members.parties

    def join(self, party: str, data: LocalData) -> frozenset[str]:
        """Take a party in; who comes back brings its records, as a newcomer would.

        Returns
        -------
        changed : frozenset of str
            Whose neighbours change.

        Raises
        ------
        ValueError
            If it is there already, or there are as many as agreed.
        DataError
            If its records are not as declared.
        """
        check_records(party, self.terms, [data])
        changed = self.members.join(party)
        try:
            self.federation.join(party, data)
        except ValueError:  # its name is taken
            self.members.leave(party)
            raise
        old = self._left.pop(party, _Holder([]))
        self._holders[party] = _Holder([_after(old.batches, data)], old.spent)
        return changed

    def leave(self, party: str) -> frozenset[str]:
        """Let a party go; the last model stays of its records, the next `round` is not.

        Returns
        -------
        changed : frozenset of str
            Whose neighbours change.

        Raises
        ------
        ValueError
            If it is not a member, or too few would be left.
        """
        changed = self.members.leave(party)
        self.federation.leave(party)
        self._left[party] = self._holders.pop(party)
        return changed

    def add(self, party: str, data: LocalData, *, disjoint: bool = False) -> None:
        """Give a member further records, for the next `increment` or `round`.

        Parameters
        ----------
        party : str
            The member.
        data : LocalData
            Its records.
        disjoint : bool, default=False
            Whether the party promises that none of them is a record that it has brought before.
            Records have no identifiers here. So without this promise, they count as released as
            often as those that the party has brought, and what they cost adds up.

        Raises
        ------
        ValueError
            If it is not a member.
        DataError
            If they are not as declared.
        """
        if party not in self._holders:
            raise ValueError(f"{party} is not a member")
        check_records(party, self.terms, [data])
        batches = self._holders[party].batches
        batches.append(_Batch(data) if disjoint else _after(batches, data))

    def round(self, absent: Collection[str] = ()) -> NaiveBayes:
        """Learn from all records of all members but the absent: a new model.

        Each round is a release of its own: the same records are released again.

        Raises
        ------
        ValueError
            If one of the absent is not a member, too many are absent or fewer than two left, or no
            class has a record left under the noise.
        DataError
            If a party has more records than agreed; it is named, and nothing was sent.
        QueryRefusedError
            If a site refuses, as its budget is spent.
        ProtocolError
            If a party fails on the way; it is named, and another round can do without it. What was
            sent counts as released.
        """
        chosen = {party: list(self._holders[party].batches) for party in self._present(absent)}
        release = self._release(chosen, absent, None)
        for batch in self._batches():
            batch.learned = False
        return self._learned(release, chosen)

    def increment(self, absent: Collection[str] = ()) -> NaiveBayes:
        """Add the records that the model is not of: those of new batches, members, returners.

        All members but the absent take part, with noise, whether they have any. No batch is
        released twice by this: what it costs a record that is in one batch is one release, whatever
        came before it and comes after for others. A party's own new records are another release of
        the party. Records that a former member brings again, or that a member adds again, are
        counted again in the model; `spent` counts each release of them (`add`).

        Raises
        ------
        ValueError, DataError, QueryRefusedError, ProtocolError
            As `round`.
        """
        before = self.model_.sums_ if hasattr(self, "model_") else None
        chosen = {
            party: [batch for batch in self._holders[party].batches if not batch.learned]
            for party in self._present(absent)
        }
        return self._learned(self._release(chosen, absent, before), chosen)

    @property
    def spent(self) -> SumPromise | None:
        """What all releases so far promise together; None without noise, or before the first.

        A record's are those that it was in; a party's, those that it took part in. No record, or
        party, has more. The words are those of the last release.
        """
        if self.promise_ is None:
            return None
        promise = replace(self.promise_, checked=self._all_checked).worded()
        party = self.promise_.protects == "party"
        protected = self._everyone() if party else self._batches()
        most = _Spent.most(each.spent for each in protected)
        return promise.over(most.cost, most.releases)

    def _everyone(self) -> Iterator[_Holder]:
        yield from (*self._holders.values(), *self._left.values())

    def _batches(self) -> Iterator[_Batch]:
        for holder in self._everyone():
            yield from holder.batches

    def _present(self, absent: Collection[str]) -> list[str]:
        self.members.check_absent(absent)
        return [party for party in self.parties if party not in absent]

    def _release(
        self, chosen: Mapping[str, list[_Batch]], absent: Collection[str], before: Values | None
    ) -> Release:
        """Have the sites bring the chosen batches, and ask; note what was sent, come what may."""
        for party, batches in chosen.items():
            records = [batch.data for batch in batches]
            check_records(party, self.terms, records)
            self.federation.roles[party].batches = records
        query = Sums.of(self.federation.analyst, self.terms, self.members, absent)
        promise = query.summation().promise  # refuses what cannot be, before anything is sent
        with self.federation.session(absent) as session:
            try:
                released = session.ask(query)
            except QueryRefusedError:
                raise  # nothing was sent
            except BaseException:
                self._note(chosen, promise)
                raise
        self._note(chosen, released.promise)
        return release_of(self.terms, released, alpha=self.alpha, before=before)

    def _note(self, chosen: Mapping[str, list[_Batch]], promise: SumPromise | None) -> None:
        self.promise_ = promise
        self._all_checked &= promise is None or promise.checked
        cost = Cost() if promise is None else promise.cost
        for party, batches in chosen.items():
            holder = self._holders[party]
            holder.spent = holder.spent.after(cost)
            for batch in batches:
                batch.spent = batch.spent.after(cost)
        if (spent := self.spent) is not None:
            self.federation.analyst.ledger.note(
                f"all releases of the study so far: {spent.sentence}",
                "all parties together",
                (self.federation.analyst.party,),
            )

    def _learned(self, release: Release, chosen: Mapping[str, list[_Batch]]) -> NaiveBayes:
        for party in release.parties:
            for batch in chosen[party]:
                batch.learned = True
        self.release_, self.model_ = release, release.model
        return release.model


def _after(batches: Iterable[_Batch], data: LocalData) -> _Batch:
    """Return a batch of records that may be those of earlier batches, released before."""
    return _Batch(data, _Spent.most(batch.spent for batch in batches))
