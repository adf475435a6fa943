"""The steps of HDPNB, and the programs that take them: one a party, and the aggregator's.

    Terms        all            what is counted, by how many, with which noise: before any data
    CountQuery   P_k            n_j^k, n_ij^k: its own classes, and features within classes
    DataPert     P_k            n + noise, drawn anew for each release, never clamped
    DataEnc      P_k -> aggregator   by the additive scheme (a roll, one message) or masked sums
    ResultDec    aggregator          the sums over all who take part; clamped once; a model

Security, leakage, cost: see `vertibayes.naive_bayes.distributed`.

References
----------
.. [1] M. Huai, L. Huang, W. Yang, L. Li, M. Qi (2015). Privacy-Preserving Naive Bayes
   Classification. Section 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpc.additive_scheme import Packing
from mpc.errors import PartyGoneError
from mpc.masked_sum import Sum
from mpc.noise import Noise
from mpc.rounds import Party, Program
from protocols.errors import DataError
from protocols.site.encoding import Encoding, encode_known
from protocols.site.statistics import GRID_BITS, LocalData, length
from protocols.site.text import TextColumn
from vertibayes.naive_bayes.accounting import Accounting, Privacy, share_of
from vertibayes.naive_bayes.base import NaiveBayes, Schema

Values: TypeAlias = NDArray[np.int64]
DataEnc: TypeAlias = Callable[[Values], Program[object]]  # how a party sends its noisy counts

PLAINTEXT_BITS = 2047  # of a packet, where nobody has drawn a longer modulus


@dataclass(frozen=True)
class Terms:
    """What all parties agree on before any data.

    Parameters
    ----------
    schema : Schema
    most_parties : int
        How many members there are at most, at any time.
    most_records : int
        How many records a party has at most in a release.
    privacy : Privacy, optional
        None: exact counts are released.
    dishonest, dropouts : float, default=0.0
        Shares of the members that work with the aggregator, and that may be missing in a release.

    Raises
    ------
    ValueError
        If a parameter is out of its range, the shares leave no `gamma`, a feature is a number and
        noise is asked for, or the noise is so large that a slot could overflow.
    """

    schema: Schema
    most_parties: int
    most_records: int
    privacy: Privacy | None = None
    dishonest: float = 0.0
    dropouts: float = 0.0

    def __post_init__(self) -> None:
        if self.most_parties < 2 or self.most_records < 1:
            given = f"{self.most_parties} parties of {self.most_records} records"
            raise ValueError(f"at most {given}: two parties of one record are the least")
        gamma = self.privacy.gamma if self.privacy else 0.0
        shares = [share_of(s, 1) for s in (gamma, self.dishonest, self.dropouts)]
        if min(shares) < 0 or sum(shares) > 1 or sum(shares[1:]) >= 1:
            raise ValueError(
                f"gamma = {gamma}, dishonest = {self.dishonest}, dropouts = {self.dropouts}: "
                "shares from 0 on, of 1 at most together, are wanted"
            )
        self._check_room()

    def _check_room(self) -> None:
        try:
            assert Packing(self.lowest, self.highest, self.most_parties, PLAINTEXT_BITS).slots
        except ValueError as error:
            noise = "" if self.privacy is None else f" and noise of up to {-self.lowest}"
            raise ValueError(
                f"{self.most_records} records{noise} of each of {self.most_parties} parties: no "
                f"slot holds such sums ({error}); a larger eps, fewer parties or records would do"
            ) from None

    @cached_property
    def accounting(self) -> Accounting | None:
        """What the noise is and promises; None if there is none."""
        if self.privacy is None:
            return None
        return Accounting(self.schema, self.privacy, self.most_records)

    @cached_property
    def counts(self) -> int:
        """How many sums are released."""
        return length(self.schema.statistics, self.schema.variables)

    @cached_property
    def _reach(self) -> int:
        return self.accounting.reach(self.most_parties, self.counts) if self.accounting else 0

    @property
    def lowest(self) -> int:
        """The lowest value that a party sends, its noise included."""
        return -self._reach

    @property
    def highest(self) -> int:
        """The highest value that a party sends: all its records in one count, and noise."""
        largest = 1 << 2 * GRID_BITS if self.schema.numeric else 1  # the square of a place
        return self.most_records * largest + self._reach

    def absent(self, members: int) -> int:
        """Return how many members may be missing in a release."""
        return math.floor(share_of(self.dropouts, members))

    def colluding(self, members: int) -> int:
        """Return how many members may work with the aggregator."""
        return math.floor(share_of(self.dishonest, members))


class Release(NamedTuple):
    """What the aggregator has of one release.

    Attributes
    ----------
    model : NaiveBayes
    sums : ndarray of shape (terms.counts,), dtype int64
        Of this release, as they were decrypted: not clamped.
    parties : tuple of Party
        Whose counts are in them.
    """

    model: NaiveBayes
    sums: Values
    parties: tuple[Party, ...]


def read_records(party: Party, schema: Schema, columns: Mapping[str, TextColumn]) -> LocalData:
    """Encode a party's columns of text in the declared states; other columns are left alone.

    Raises
    ------
    DataError
        If a column is lacking, or has a class or category that was not declared: it names the
        party, the column and the record.
    ValueError
        If a feature is a number.
    """
    if schema.numeric:
        raise ValueError(f"{schema.numeric[0]} is a number: text is read in declared states")
    if lacking := [name for name in schema.variables if name not in columns]:
        raise DataError(f"{party} has no column {lacking[0]!r}")
    how = Encoding(states={name: v.states for name, v in schema.variables.items()})
    codes = {name: encode_known(party, name, columns[name], how).codes for name in schema.variables}
    return LocalData(schema.variables, codes)


def check_records(party: Party, terms: Terms, batches: Sequence[LocalData]) -> None:
    """Refuse records of other states than declared, or more than were.

    Raises
    ------
    DataError
        Naming the party.
    """
    schema = terms.schema
    for data in batches:
        for name, variable in schema.variables.items():
            have = data.variables.get(name)
            if have is None or have.states != variable.states:
                raise DataError(f"{party} has not {name!r} in the declared states")
        for name in schema.numeric:
            if data.numerics.get(name) != schema.features[name]:
                raise DataError(f"{party} has not {name!r} between the declared bounds")
    if sum(data.records for data in batches) > terms.most_records:
        raise DataError(f"{party} has more records than the {terms.most_records} agreed")


def count_query(party: Party, terms: Terms, batches: Sequence[LocalData]) -> Values:
    """CountQuery: return a party's own counts; zeros if it has no records.

    Raises
    ------
    DataError
        As `check_records`.
    """
    check_records(party, terms, batches)
    counts = np.zeros(terms.counts, np.int64)
    for data in batches:
        counts += terms.schema.measure(data)
    return counts


def data_pert(counts: Values, noise: Noise) -> Values:
    """DataPert: return the counts with fresh noise on each, zeros included.

    Raises
    ------
    ImportError
        If copies of noise are wanted and OpenDP is not installed.
    """
    return counts + noise(len(counts))


def take_part(
    party: Party, terms: Terms, batches: Sequence[LocalData], noise: Noise, data_enc: DataEnc
) -> Program[None]:
    """Take part in one release: a party's program, CountQuery, DataPert and DataEnc.

    Parameters
    ----------
    party : Party
    terms : Terms
    batches : sequence of LocalData
        The records that the release is of.
    noise : Noise
    data_enc : callable
        From the noisy counts to the program that sends them: `mpc.membership.answer_roll` or
        `mpc.masked_sum.contribute`, bound to this party and release.
    """
    counts = count_query(party, terms, batches)
    yield from data_enc(data_pert(counts, noise))


def result_dec(
    terms: Terms,
    members: Sequence[Party],
    opened: Program[Sum],
    *,
    alpha: float = 1.0,
    before: Values | None = None,
) -> Program[Release]:
    """ResultDec: decrypt the sums and fit a model to them: the aggregator's program.

    Parameters
    ----------
    terms : Terms
    members : sequence of Party
        Who is asked, the absent included.
    opened : Program
        Opens the sum: `mpc.membership.call_roll` or `mpc.masked_sum.collect`.
    alpha : float, default=1.0
        As of `NaiveBayes`.
    before : ndarray of shape (terms.counts,), dtype int64, optional
        Sums of other records, which these are added to.

    Raises
    ------
    PartyGoneError
        If so many are missing that the noise of the others does not keep the promise.
    ValueError
        If no class has a record left.
    """
    found = yield from opened
    if len(members) - len(found.parties) > terms.absent(len(members)) and terms.privacy:
        gone = ", ".join(sorted(set(members) - set(found.parties)))
        raise PartyGoneError(gone, "gone: the noise of the others does not keep the promise")
    sums = found.values if before is None else before + found.values
    return Release(NaiveBayes(terms.schema, alpha=alpha).fit_sums(sums), *found)
