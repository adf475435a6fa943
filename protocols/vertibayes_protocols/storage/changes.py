"""What a site remembers of the values that it has answered for, and who differs since.

Tables from before and after the correction of one record differ by this record's row, also by its
values at sites that changed nothing. A site therefore keeps, of each study, a keyed digest of each
record's value in all columns that it offers (`Snapshot`): two columns may say the same, and a table
of one before a correction and of the other after it differ by the row. What two studies show of the
people who differ depends on what leaves (`Changes.check`):

    any study      refused if at least one but fewer than `fewest` values of a column changed
    without noise  refused, too, if anything differs, or if an earlier study hid small counts by
                   another rule, as both show what each hides; the owner may approve both studies

However many people differ, some of them alone have a value, and are alone in a cell of the
difference. A column with other states or bins differs for all people: tables of both would show
those between the edges.

Records are compared by their identifiers, column by column, because a table shows the columns that
the analyst chooses. The rows of people whom only one of two studies has are compared as a whole,
whoever they belong to: new pseudonyms of the same people hide no correction. The memory of record
sets (`vertibayes_protocols.storage.memory`) refuses a few added or removed identifiers.

What this does not see: a change in new pseudonyms that exchanges values between people of one
site.

Space: 8 bytes per record, and 1 or 2 per record and column: 28 MB for 10^6 records of 20 columns
with up to 256 states. A further snapshot takes only what differs from the earlier snapshots: the
list of identifiers if it changed, and each changed column. The file takes at most `MOST_BYTES`. It
is as secret as the data: whoever has the key beside it can search for the values.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.errors import ChangedDataError
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.whole_file import WholeFile, noted, read_noted
from vertibayes_protocols.variables import Variable

FORMAT = 2  # 1: without the rules
MOST_BYTES = 1 << 30  # of all snapshots together
DIGEST = hashlib.sha256().digest_size
ROWS = "rows with new identifiers"
NOISY, HIDING = ("laplace", "gaussian"), ("cut", "rounded")  # rules
ORDER = np.uint64(0x9E3779B97F4A7C15)  # odd: its powers weight the records of one person

Digests: TypeAlias = NDArray[np.unsignedinteger]
Values: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a column, as keyed digests."""

    digests: Values = field(repr=False)  # the digests that appear
    places: Digests = field(repr=False)  # of each person, the place of the digest in `digests`

    @property
    def values(self) -> Values:
        """The digest of each person's value."""
        return self.digests[self.places]

    @property
    def nbytes(self) -> int:
        """The space that the column takes, in bytes."""
        return self.digests.nbytes + self.places.nbytes

    def equals(self, other: Column) -> bool:
        """Whether all persons have the same values in another column."""
        return len(self.places) == len(other.places) and bool((self.values == other.values).all())


@dataclass(frozen=True)
class Difference:
    """Who and what differs between two studies: the groups of people that tables can separate."""

    came: int
    left: int
    moved: Mapping[str, tuple[int, ...]]  # by column: how many went from one value to another
    exchanged: int  # rows that only one of the studies has, of people whom only one has
    rule: str = ""  # by which the earlier study hid small counts, if the later one does otherwise

    @property
    def is_any(self) -> bool:
        """Whether tables of both studies differ, or one shows what the other hides."""
        return bool(self.changed or self.rule)

    @property
    def smallest(self) -> int:
        """The size of the smallest group; 0 if nothing differs."""
        groups = [self.came, self.left, self.exchanged, *chain(*self.moved.values())]
        return min(filter(None, groups), default=0)

    @property
    def changed(self) -> dict[str, int]:
        """How many values of each column changed, and how many rows with new pseudonyms."""
        sums = {name: sum(sizes) for name, sizes in self.moved.items()}
        return {name: n for name, n in (sums | {ROWS: self.exchanged}).items() if n}

    def few(self, fewest: int) -> dict[str, int]:
        """Where at least 1, but fewer than `fewest`, changed."""
        return {where: count for where, count in self.changed.items() if count < fewest}

    @property
    def words(self) -> str:
        """What differs, for the site's owner."""
        parts = [f"{n} {which}" for n, which in ((self.came, "came"), (self.left, "left")) if n]
        parts += [f"{name}: {count} changed" for name, count in self.changed.items()]
        parts += [f"released by {self.rule}, which hides other counts"] * bool(self.rule)
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The values that a study used at a site."""

    people: Digests = field(repr=False)
    columns: Mapping[str, Column] = field(repr=False)
    rule: str = ""  # by which tables of them left, as `Rule.name`; empty: by none, or unknown

    @property
    def has_noise(self) -> bool:
        """Whether what left of them had noise."""
        return self.rule in NOISY

    @classmethod
    def of(cls, key: bytes, data: SiteData, names: Iterable[str], identifiers: Digests) -> Snapshot:
        """Return the snapshot of some columns of a site's data."""
        order = np.argsort(identifiers, kind="stable")
        people = identifiers[order]
        first = np.append(True, people[1:] != people[:-1])[: len(people)]
        starts = np.flatnonzero(first)
        columns = {}
        for name in names:
            digests, codes = digests_of(key, data.variables[name]), data.codes[name][order]
            alone = len(starts) == len(people)
            columns[name] = Column(digests, codes) if alone else _joined(digests[codes], starts)
        return cls(people[first], columns)

    def of_people(self, people: Digests) -> Snapshot:
        """Return the values of those people who are in a list."""
        here = np.isin(self.people, people, assume_unique=True)
        columns = {n: Column(c.digests, c.places[here]) for n, c in self.columns.items()}
        return Snapshot(self.people[here], columns, self.rule)

    def place_of(self, person: int) -> int | None:
        """Return the place of a person, by the digest of the identifier; None if it has none."""
        at = int(np.searchsorted(self.people, person))
        return at if at < len(self.people) and int(self.people[at]) == person else None

    def difference(self, later: Snapshot) -> Difference | None:
        """Return what differs in a later study; None if the two have no column in common."""
        names = [name for name in self.columns if name in later.columns]
        if not names:
            return None
        mine, theirs = _in_both(self.people, later.people)
        moved = {n: _moves(self.columns[n], later.columns[n], mine, theirs) for n in names}
        rows = [np.delete(s._rows(names), both) for s, both in ((self, mine), (later, theirs))]
        exchanged = _exchanged(*rows)
        came, left = len(later.people) - len(mine), len(self.people) - len(mine)
        both_hide = self.rule.startswith(HIDING) and later.rule.startswith(HIDING)
        other = self.rule if both_hide and self.rule != later.rule else ""
        return Difference(came, left, moved, exchanged, other)

    def digest(self, key: bytes) -> bytes:
        """Return a keyed digest of all values, and of the rule: studies with another differ."""
        code = hmac.new(key, self.people.astype("<u8").tobytes(), hashlib.sha256)
        code.update(hashlib.sha256(self.rule.encode()).digest())
        for name, column in sorted(self.columns.items()):
            code.update(hashlib.sha256(name.encode()).digest())
            code.update(column.values.astype("<u8").tobytes())
        return code.digest()

    def _rows(self, names: Iterable[str]) -> Values:
        """Return a digest of each person's row: equal sums of keyed digests mean equal rows."""
        rows = np.zeros(len(self.people), np.uint64)
        for name in names:
            rows += self.columns[name].values
        return rows


class Changes:
    """The snapshots of all studies that a site has answered, kept in a file or only in memory."""

    def __init__(self, path: Path | None, tag: bytes) -> None:
        self.snapshots: list[Snapshot] = []
        self._path, self._tag = path, tag
        self._file: WholeFile | None = None
        self._unsaved = False
        if path is not None and path.exists():
            self._load(path)

    def beside(self, snapshot: Snapshot, fewest: int) -> tuple[bytes, tuple[Difference, ...]]:
        """Return how a snapshot differs from those beside which a site refuses it.

        Also a digest of it and of each of them: what an owner approves is these, and no later one.
        """
        found = [
            (earlier.digest(self._tag), difference)
            for earlier, difference in self._differences(snapshot)
            if difference.few(fewest)
            or (difference.is_any and not (snapshot.has_noise or earlier.has_noise))
        ]
        digests = [snapshot.digest(self._tag), *(digest for digest, _ in found)]
        return b"".join(digests), tuple(difference for _, difference in found)

    def approved(self, snapshot: Snapshot, data: bytes) -> frozenset[bytes]:
        """Return the earlier studies beside which `data`, of `beside`, approve this snapshot."""
        own, *earlier = (data[at : at + DIGEST] for at in range(0, len(data), DIGEST))
        is_same = hmac.compare_digest(own, snapshot.digest(self._tag))
        return frozenset(earlier) if is_same else frozenset()

    def _differences(
        self, snapshot: Snapshot, approved: Collection[bytes] = ()
    ) -> Iterator[tuple[Snapshot, Difference]]:
        """Yield how a snapshot differs from those of earlier studies, except approved ones."""
        for earlier in self.snapshots:
            if approved and earlier.digest(self._tag) in approved:
                continue
            if (difference := earlier.difference(snapshot)) is not None:
                yield earlier, difference

    def check(self, snapshot: Snapshot, fewest: int, approved: Collection[bytes] = ()) -> None:
        """Refuse a snapshot in which few records changed since an earlier one."""
        few = [d.few(fewest).items() for _, d in self._differences(snapshot, approved)]
        if changed := dict(chain(*few)):
            raise ChangedDataError(
                f"fewer than {fewest} records have changed since an earlier study, whose tables "
                f"would differ by these records: wait until at least {fewest} have changed in "
                "each changed column, keep the earlier snapshot of the data, or have its owner "
                "approve the study with these data",
                "changed records: " + ", ".join(f"{where} {n}" for where, n in changed.items()),
            )
        if _size(self._with(snapshot)) > MOST_BYTES:
            raise ValueError(
                f"the values of its earlier studies take more than {MOST_BYTES:,} bytes: keep an "
                "earlier snapshot of the data, or begin with a new memory, which forgets all "
                "earlier studies"
            )

    def check_counts(self, snapshot: Snapshot, approved: Collection[bytes] = ()) -> None:
        """Refuse counts, without noise, of data that differ from those of an earlier study."""
        for earlier, difference in self._differences(snapshot, approved):
            if difference.is_any and not earlier.has_noise:
                raise ChangedDataError(
                    "its people, values or rule are not those of an earlier study, and counts "
                    "without noise of both studies would show the people who differ: have its "
                    "owner approve the study with these data (`vertibayes approve` says what both "
                    "show), keep the earlier data, or release by laplace or gaussian",
                    difference.words,
                )

    def check_people(
        self, people: Digests, fewest: float, approved: Collection[bytes] = ()
    ) -> None:
        """Refuse a list of people from which few came or went since an earlier study.

        A site whose study has people that it does not know cannot see whether the people who came
        or went are in the study: tables of two studies may differ by them. Any are few if `fewest`
        is infinite.
        """
        few = "some people" if fewest == math.inf else f"fewer than {fewest} people"
        for earlier in self.snapshots:
            came = len(np.setdiff1d(people, earlier.people))
            gone = len(np.setdiff1d(earlier.people, people))
            is_approved = approved and earlier.digest(self._tag) in approved
            if (0 < came < fewest or 0 < gone < fewest) and not is_approved:
                raise ChangedDataError(
                    f"{few} came to its list, or left it, since an earlier study: wait until more "
                    "have changed, keep the earlier list, or have its owner approve the study "
                    "with these data",
                    f"since an earlier study {came} people came and {gone} left",
                )

    def keep(self, snapshot: Snapshot) -> None:
        """Remember a snapshot, on disk when this returns, before the site answers for it."""
        with_it = self._with(snapshot)
        if with_it is self.snapshots and not self._unsaved:
            return
        self.snapshots, self._unsaved = with_it, True
        if self._path is not None:
            self._file = self._file or WholeFile(self._path)
            self._file.write(self._encoded())
        self._unsaved = False

    def _with(self, snapshot: Snapshot) -> list[Snapshot]:
        """Return the snapshots with one more, which shares with them what is equal."""
        for place, earlier in enumerate(self.snapshots):
            if earlier.rule != snapshot.rule or not np.array_equal(earlier.people, snapshot.people):
                continue
            shared = {
                name: known if (known := earlier.columns.get(name)) and known.equals(new) else new
                for name, new in snapshot.columns.items()
            }
            snapshot = Snapshot(earlier.people, shared, snapshot.rule)
            both = earlier.columns.keys() & shared.keys()
            if all(shared[name] is earlier.columns[name] for name in both):
                if len(both) == len(shared):
                    return self.snapshots
                whole = replace(earlier, columns={**earlier.columns, **shared})
                return [*self.snapshots[:place], whole, *self.snapshots[place + 1 :]]
        return [*self.snapshots, snapshot]

    # ---- the file ----------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _encoded(self) -> bytes:
        lists, columns = _distinct(self.snapshots)
        arrays: dict[str, Any] = {f"people{place}": people for place, people in enumerate(lists)}
        for place, column in enumerate(columns):
            arrays |= {f"digests{place}": column.digests, f"places{place}": column.places}
        of = {id(thing): place for things in (lists, columns) for place, thing in enumerate(things)}
        notes = {
            "format": FORMAT,
            "tag": self._tag.hex(),
            "snapshots": [
                [of[id(s.people)], {name: of[id(c)] for name, c in s.columns.items()}, s.rule]
                for s in self.snapshots
            ],
        }
        return noted(notes, **arrays)

    def _load(self, path: Path) -> None:
        with read_noted(path, FORMAT, "does not have the values of studies") as (notes, file):
            if hmac.compare_digest(str(notes["tag"]), self._tag.hex()):  # else of a lost memory
                self.snapshots = _read(file, notes["snapshots"])


def _read(file: Mapping[str, NDArray[np.unsignedinteger]], notes: Any) -> list[Snapshot]:
    """Return the snapshots of a file, which share what they shared when they were written."""
    lists: dict[int, Digests] = {}
    columns: dict[int, Column] = {}
    snapshots = []
    for people, places, *rule in notes:
        lists.setdefault(people, file[f"people{people}"])
        for place in places.values():
            if place not in columns:
                columns[place] = Column(file[f"digests{place}"], file[f"places{place}"])
        of = {str(name): columns[place] for name, place in places.items()}
        snapshots.append(Snapshot(lists[people], of, *map(str, rule)))
        if any(len(c.places) != len(lists[people]) or c.places.ndim != 1 for c in of.values()):
            raise ValueError("a column has a wrong length")
    for array in (*lists.values(), *(a for c in columns.values() for a in (c.digests, c.places))):
        if array.dtype.kind != "u" or array.ndim != 1:
            raise ValueError("an array has a wrong type")
    for column in columns.values():
        if len(column.places) and int(column.places.max()) >= len(column.digests):
            raise ValueError("a place is beyond the digests")
    return snapshots


def _distinct(snapshots: Iterable[Snapshot]) -> tuple[list[Digests], list[Column]]:
    """Return the lists of people and the columns of snapshots, shared ones once."""
    lists = {id(s.people): s.people for s in snapshots}
    columns = {id(c): c for s in snapshots for c in s.columns.values()}
    return list(lists.values()), list(columns.values())


def _size(snapshots: Iterable[Snapshot]) -> int:
    lists, columns = _distinct(snapshots)
    return sum(people.nbytes for people in lists) + sum(column.nbytes for column in columns)


def digests_of(key: bytes, variable: Variable) -> Values:
    """Return the keyed digest of each code of a variable: of its states, then of missing."""
    texts = [*("+" + state for state in variable.states), *[""] * variable.missing]
    name = hashlib.sha256(variable.name.encode()).digest()
    digests = (hashlib.blake2b(name + t.encode(), key=key, digest_size=8).digest() for t in texts)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _joined(values: Values, starts: NDArray[np.intp]) -> Column:
    """Return a column with one value per person: of the person's records, in their order."""
    lengths = np.diff(np.append(starts, len(values)))
    place = np.arange(len(values)) - np.repeat(starts, lengths)  # among the person's records
    weights = np.power(ORDER, place.astype(np.uint64))
    digests, places = np.unique(np.add.reduceat(values * weights, starts), return_inverse=True)
    return Column(digests, places.astype(np.min_scalar_type(len(digests))))


def _in_both(one: Digests, other: Digests) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the people who are in two lists, in each of the lists."""
    if np.array_equal(one, other):
        everyone = np.arange(len(one))
        return everyone, everyone
    _, mine, theirs = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return mine, theirs


def _moves(
    one: Column, other: Column, mine: NDArray[np.intp], theirs: NDArray[np.intp]
) -> tuple[int, ...]:
    """Return how many people went from one value to another, for each such pair of values."""
    if one is other:
        return ()
    before, after = one.values[mine], other.values[theirs]
    pairs = np.stack([before, after])[:, before != after]
    return tuple(np.unique(pairs, axis=1, return_counts=True)[1].tolist())


def _exchanged(one: Values, other: Values) -> int:
    """Return how many rows are in one of two lists only, in the list that has more such rows."""
    _, which = np.unique(np.concatenate([one, other]), return_inverse=True)
    more = np.bincount(which[: len(one)], minlength=len(which)) - np.bincount(
        which[len(one) :], minlength=len(which)
    )
    return int(max(more[more > 0].sum(), -more[more < 0].sum()))
