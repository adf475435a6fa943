"""HDPNB: naive Bayes over parties that each hold some of the records.

    Terms        all            schema, most parties and records, noise: agreed before any data
    Join, leave  P_k <-> P_j    keys with new neighbours (mpc.membership); u_k of two at most
    CountQuery   P_k            n_j^k and n_ij^k of its own records
    DataPert     P_k            each plus noise: diluted by u_k, or a Polya share, drawn anew
    DataEnc      P_k -> aggregator   via="additive": a roll comes, one message of ciphertexts goes
                                via="masked": five rounds, drop-outs between any two
    ResultDec    aggregator          sums over all who are in, clamped once; a model

The scheme of Huai et al. (2015), with the modulus, the noise and the accounting mended: see
`mpc.additive_scheme`, `mpc.noise` and `vertibayes.naive_bayes.accounting`.

Security: the aggregator and the `dishonest` share of the parties learn the noisy sums over the
others and nothing else; that these tell little of a record, or a party, is the `Promise` of each
release. Parties are taken to count their own records rightly and to add their noise: one that lies
can shift each count by what fits a slot, and nobody sees it. Called absent, and so left out with
its noise, is at most the `dropouts` share: with the additive scheme each party refuses other rolls;
with masked sums the aggregator is trusted with it where the quorum does not do (`Promise.checked`).
Who announces joins and leaves is trusted to tell true neighbours and u_k <= n; members are public,
so all can compare. Two of the members at least must be there. Leakage: the noisy sums, to the
aggregator; members, who is absent, when, how much is sent, to all. A party without records sends
noise as the others, and cannot be told from them. Cost: additive scheme, 2 rounds, 2 |N| bits and
one exponentiation a packet of some 50 to 200 counts; masked sums, 5 rounds, 2 to 8 bytes a count,
and some 180 bytes a neighbour.

References
----------
M. Huai, L. Huang, W. Yang, L. Li, M. Qi: Privacy-preserving naive Bayes classification (2015),
sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from mpc.membership import Estimates
from mpc.noise import IntegerNoise, no_noise
from mpc.randomness import Randomness, SystemRandomness
from mpc.rounds import Party, Program
from mpc.scheduler import ByHand, Carrier, Scheduler
from protocols.site.statistics import LocalData
from vertibayes.naive_bayes.accounting import Promise
from vertibayes.naive_bayes.aggregations import AGGREGATOR, AdditiveSums, Aggregation, MaskedSums
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.naive_bayes.parties import (
    Release,
    Terms,
    Values,
    check_records,
    result_dec,
    take_part,
)

Via = Literal["additive", "masked"]


@dataclass
class _Batch:
    """Records that a party brought at one time."""

    data: LocalData = field(repr=False)
    releases: int = 0  # that they were in
    learned: bool = False  # whether the present model is of them


@dataclass
class _Holder:
    """What the study keeps of a party, as long as it is a member."""

    batches: list[_Batch]
    releases: int = 0


class HDPNB:
    """A study that goes on from release to release, all parties in this process.

    Between machines, each party runs `take_part` and the aggregator `result_dec`, as here.

    Parameters
    ----------
    terms : Terms
    parties : mapping of Party to LocalData
        Who is there at first: two at least. A party may have no records.
    via : {"additive", "masked"}, default="additive"
    alpha : float, default=1.0
        As of `NaiveBayes`.
    modulus : int, optional
        Of the additive scheme; drawn, and its factors forgotten, if None.
    randomness : Randomness, optional
        Of keys, masks, coins and Polya shares; whole copies of noise are OpenDP's.
    carrier : callable, optional
        Makes the carrier of each release's messages.

    Attributes
    ----------
    model_ : NaiveBayes
        Of the last release; scikit-learn's attributes.
    release_ : Release
        The last one: its sums and whose they are.
    promise_ : Promise or None
        Of the last release by itself; `spent` is of all.

    Raises
    ------
    ValueError
        If the parties are too few or too many, one has the aggregator's name, or `gamma` of them is
        less than one.
    DataError
        If a party's records are not as declared; it is named.
    """

    model_: NaiveBayes
    release_: Release

    def __init__(
        self,
        terms: Terms,
        parties: Mapping[Party, LocalData],
        *,
        via: Via = "additive",
        alpha: float = 1.0,
        modulus: int | None = None,
        randomness: Randomness | None = None,
        carrier: Callable[[], Carrier] = ByHand,
    ) -> None:
        if via not in ("additive", "masked"):
            raise ValueError(f"via = {via!r}: additive or masked")
        self.terms, self.alpha, self.carrier = terms, alpha, carrier
        self.promise_: Promise | None = None
        self._all_checked = True
        self.randomness = randomness or SystemRandomness()
        self._check_members(parties)
        for party, data in parties.items():
            check_records(party, terms, [data])
        self._holders = {party: _Holder([_Batch(data)]) for party, data in parties.items()}
        self._left: dict[Party, _Holder] = {}
        self.estimates = Estimates(parties)
        self.aggregation: Aggregation = (
            MaskedSums(terms, parties, self.randomness)
            if via == "masked"
            else AdditiveSums(terms, parties, self.randomness, modulus)
        )

    @property
    def parties(self) -> tuple[Party, ...]:
        """The members, sorted."""
        return tuple(sorted(self._holders))

    def join(self, party: Party, data: LocalData) -> frozenset[Party]:
        """Take a party in; who comes back brings its records, as a newcomer would.

        Returns
        -------
        changed : frozenset of Party
            Whose keys change.

        Raises
        ------
        ValueError
            If it is there already, or there are as many as agreed.
        DataError
            If its records are not as declared.
        """
        if party in self._holders:
            raise ValueError(f"{party} is a member already")
        self._check_members([*self._holders, party])
        check_records(party, self.terms, [data])
        self._holders[party] = self._comes(party, data)
        self.estimates.join(party)
        return self.aggregation.join(party)

    def leave(self, party: Party) -> frozenset[Party]:
        """Let a party go; the last model stays of its records, the next `round` is not.

        Returns
        -------
        changed : frozenset of Party
            Whose keys change.

        Raises
        ------
        ValueError
            If it is no member, or too few would be left.
        """
        if party not in self._holders:
            raise ValueError(f"{party} is no member")
        self._check_members([p for p in self._holders if p != party])
        self._left[party] = self._holders.pop(party)
        self.estimates.leave(party)
        return self.aggregation.leave(party)

    def add(self, party: Party, data: LocalData) -> None:
        """Give a member new records, for the next `increment` or `round`.

        Raises
        ------
        ValueError
            If it is no member.
        DataError
            If they are not as declared.
        """
        if party not in self._holders:
            raise ValueError(f"{party} is no member")
        check_records(party, self.terms, [data])
        self._holders[party].batches.append(_Batch(data))

    def round(self, absent: Collection[Party] = ()) -> NaiveBayes:
        """Learn from all records of all members but the absent: a new model.

        Each round is a release of its own: the same records are released again.

        Raises
        ------
        ValueError
            If one of the absent is no member, too many are absent or fewer than two left, or no
            class has a record left under the noise.
        DataError
            If a party has more records than agreed; it is named, and nothing was sent.
        ProtocolError
            If a party fails on the way; it is named, and another round can do without it. What was
            sent counts as released.
        """
        chosen = {party: list(self._holders[party].batches) for party in self._present(absent)}
        release = self._release(chosen, absent, None)
        for batch in self._batches():
            batch.learned = False
        return self._learned(release, chosen)

    def increment(self, absent: Collection[Party] = ()) -> NaiveBayes:
        """Add the records that the model is not of: those of new batches, members, returners.

        All members but the absent take part, with noise, whether they have any. No record is
        released twice by this: what it costs a record is one release, whatever came before it and
        comes after for others. A party's own new records are another release of the party. Records
        that a former member brings again are taken for new: `round` counts them once.

        Raises
        ------
        ValueError, DataError, ProtocolError
            As `round`.
        """
        before = self.model_.sums_ if hasattr(self, "model_") else None
        chosen = {
            party: [batch for batch in self._holders[party].batches if not batch.learned]
            for party in self._present(absent)
        }
        return self._learned(self._release(chosen, absent, before), chosen)

    @property
    def spent(self) -> Promise | None:
        """What all releases so far promise together; None without noise, or before the first.

        A record's are those that it was in; a party's, those that it took part in. The noise of the
        last release stands for all.
        """
        if self.promise_ is None:
            return None
        promise = replace(self.promise_, checked=self._all_checked)
        holders = [*self._holders.values(), *self._left.values()]
        if self.promise_.protects == "party":
            return promise.times(max(holder.releases for holder in holders))
        return promise.times(max(batch.releases for batch in self._batches()))

    def _batches(self) -> Iterator[_Batch]:
        for holder in (*self._holders.values(), *self._left.values()):
            yield from holder.batches

    def _comes(self, party: Party, data: LocalData) -> _Holder:
        """Take a party's records; who comes back may bring the same, released before."""
        old = self._left.pop(party, _Holder([]))
        releases = max((batch.releases for batch in old.batches), default=0)
        return _Holder([_Batch(data, releases)], old.releases)

    def _check_members(self, parties: Collection[Party]) -> None:
        most = self.terms.most_parties
        if not 2 <= len(parties) <= most:
            raise ValueError(f"{len(parties)} parties: from 2 to {most} are wanted")
        if AGGREGATOR in parties:
            raise ValueError(f"a party has the aggregator's name, {AGGREGATOR!r}")
        if self.terms.accounting:
            self.terms.accounting.honest(len(parties))

    def _present(self, absent: Collection[Party]) -> list[Party]:
        gone, n = set(absent), len(self._holders)
        if strangers := sorted(gone - set(self._holders)):
            raise ValueError(f"{strangers[0]} is no member, and cannot be absent")
        if n - len(gone) < 2:
            raise ValueError(f"{n - len(gone)} of {n} parties are there: two at least are wanted")
        if len(gone) > self.terms.absent(n):
            raise ValueError(
                f"{len(gone)} of {n} parties are absent, {self.terms.absent(n)} may be at most "
                f"(dropouts = {self.terms.dropouts})"
            )
        return [party for party in self.parties if party not in gone]

    def _noises(self, present: Sequence[Party]) -> dict[Party, IntegerNoise]:
        accounting, u = self.terms.accounting, self.estimates.values
        if accounting is None:
            return {}
        return {party: accounting.noise(u[party], self.randomness) for party in present}

    def _release(
        self, chosen: Mapping[Party, list[_Batch]], absent: Collection[Party], before: Values | None
    ) -> Release:
        """Run the programs of all; note what is sent before it is."""
        terms, noises = self.terms, self._noises(list(chosen))
        records = {party: [batch.data for batch in found] for party, found in chosen.items()}
        for party, data in records.items():
            check_records(party, terms, data)
        opening = self.aggregation.release(frozenset(absent))
        programs: dict[Party, Program[Any]] = {
            party: take_part(
                party, terms, data, noises.get(party, no_noise), opening.encryptors[party]
            )
            for party, data in records.items()
        }
        members = self.parties
        programs[AGGREGATOR] = result_dec(
            terms, members, opening.opened, alpha=self.alpha, before=before
        )
        self._note(chosen)
        if terms.accounting:
            safe = opening.fewest - terms.colluding(len(members))
            checked = safe >= terms.accounting.honest(len(members))
            self._all_checked &= checked
            self.promise_ = terms.accounting.promise(
                list(noises.values()),
                len(members),
                terms.colluding(len(members)),
                checked=checked,
            )
        return self._run(programs, absent)

    def _note(self, chosen: Mapping[Party, list[_Batch]]) -> None:
        for party, found in chosen.items():
            self._holders[party].releases += 1
            for batch in found:
                batch.releases += 1

    def _run(self, programs: Mapping[Party, Program[Any]], absent: Collection[Party]) -> Release:
        """Step all programs until the aggregator has the model; the absent have gone before."""
        scheduler = Scheduler(self.carrier())
        try:
            for party in absent:
                scheduler.drop(party)
            for party, program in programs.items():
                scheduler.start(party, program)
            release: Release = scheduler.finish(AGGREGATOR)
        finally:
            scheduler.close()
        return release

    def _learned(self, release: Release, chosen: Mapping[Party, list[_Batch]]) -> NaiveBayes:
        for party in release.parties:
            for batch in chosen[party]:
                batch.learned = True
        self.release_, self.model_ = release, release.model
        return release.model


def pooled(terms: Terms, records: Sequence[LocalData], *, alpha: float = 1.0) -> NaiveBayes:
    """Return the model of all records in one place: what releases without noise equal."""
    sums = sum((terms.schema.measure(data) for data in records), np.zeros(terms.counts, np.int64))
    return NaiveBayes(terms.schema, alpha=alpha).fit_sums(sums)
