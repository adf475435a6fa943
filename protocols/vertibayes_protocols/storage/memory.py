"""What a site remembers across sessions: committed columns, answered record sets, and releases.

Tables over two record sets, or sums and differences of several, that differ by one person reveal
this person's whole row. Tables of one study from before and after a change of a column belong to
different data. A site that remembers refuses both. Digests are made with a local key and never
leave the site, because a plain digest of a rare column can be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.prefixed import prefixed
from vertibayes_mpc.randomness import KEY_BYTES, Randomness, SystemRandomness
from vertibayes_mpc.rounds import Party
from vertibayes_protocols import clock
from vertibayes_protocols.budget import Cost, Released
from vertibayes_protocols.effects import (
    ByRule,
    Effects,
    Freely,
    RecordStatistics,
    Scored,
    Winners,
)
from vertibayes_protocols.errors import ChangedDataError, DataError
from vertibayes_protocols.site.binning import bins_of
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.storage.alignments import Alignments
from vertibayes_protocols.storage.chain import Chain
from vertibayes_protocols.storage.changes import (
    Changes,
    Difference,
    Snapshot,
    Values,
    digests_of,
)
from vertibayes_protocols.storage.changes import Digests as Digests
from vertibayes_protocols.storage.meet_counts import ALIGNMENTS, MeetCounts
from vertibayes_protocols.storage.record_sets import RecordSets
from vertibayes_protocols.storage.run_record import RunRecord, Runs
from vertibayes_protocols.storage.runs_together import RunsTogether
from vertibayes_protocols.storage.whole_file import WholeFile, noted, read_noted
from vertibayes_protocols.variables import Variable

FORMAT = 3  # 1: without `states`; 2: without `writes` and `ledger`
MOST_STUDIES = 1000  # that can be resumed
OLDER: Mapping[str, Any] = {  # what the file of an older release may not have
    "runs": {}, "steps": {}, "sums": [-1, 0.0, 0.0, 0], "numbers": {}, "released": [0, 0, 0, 0],
    "chosen": 0, "values": False, "hidden": {}, "unanswered": {}, "forgiven": {}, "states": {},
    "together": {}, "writes": 0, "ledger": [0, ""],
}  # fmt: skip

T = TypeVar("T")


class Beside(NamedTuple):
    """How a site's data differ from those of earlier studies, and the digests of both."""

    data: bytes
    differences: tuple[Difference, ...]


@dataclass
class SiteMemory:
    """A site's memory, kept in a file or only in this process."""

    path: Path | None = None
    randomness: Randomness = field(default_factory=SystemRandomness, repr=False)

    def __post_init__(self) -> None:
        self._key = self.randomness.bytes(KEY_BYTES)
        self._committed: dict[str, dict[str, str]] = {}  # study -> column -> digest
        self._seeds: dict[str, str] = {}  # study -> this site's part of its seed
        self._frame: dict[str, str] = {}  # column -> digest, of records without identifiers
        self.meets = MeetCounts(self._beside(".forgiven"), self._keep)
        self.aligned = Alignments(self._beside(".alignments"))
        self.together = RunsTogether(self._beside(".accepted"), self._keep)
        self.runs = Runs(self._keep)  # of approved studies
        self._sums: dict[str, int] = {}  # analyst's key -> number of the last sum with it
        self._older_sum = -1  # the last number in a memory that did not distinguish analysts
        self.began = clock.time_ns() // 1000  # microseconds: sums of a lost memory are older
        self.spent = Cost()  # of all releases with noise so far
        self.scored = 0  # records whose scores were sent
        self.sets = RecordSets()  # that were answered for, in all studies
        self._hidden: dict[str, int] = {}  # study of unknown people -> how many they are
        self._sizes: set[int] | None = set()  # of sets of known people; None: in an older memory
        self.writes = 0  # of the file, so far
        self.ledger: Chain | None = None  # of the ledger that is open beside the memory
        self._ledger_was = (0, b"")  # lines and head, when the file was written
        self._unsaved = False
        self.changes = Changes(None, b"")  # until the key is read
        self._has_values = False  # a file of changes was written
        self.states: dict[str, tuple[str, ...]] = {}  # of the columns of answered studies
        self.released = Released()  # of approved studies
        self.chosen = 0  # bits of the winners of their choices
        self.released_freely = Released()  # exact tables outside approved studies
        self.plain = 0  # results without noise, except free tables: as `left_plain` counts
        self._file = None if self.path is None else WholeFile(self.path)
        if self.path is not None and self.path.exists():
            try:
                self._read(self.path)
            except ValueError:
                self.close()
                raise
        self._open_changes()

    @classmethod
    def read(cls, path: Path) -> SiteMemory:
        """Return what a file has; it is neither locked nor changed, so its site may run."""
        memory = cls()
        memory.path = path
        memory.aligned = Alignments(memory._beside(".alignments"))
        memory._read(path)
        memory._open_changes()
        return memory

    # ---- commitments -----------------------------------------------------------------------------

    def commit(self, study: bytes, codes: Mapping[str, NDArray[np.unsignedinteger]]) -> None:
        """Remember columns before they are committed in a study; refuse them as `check` does."""
        self.check(study, codes)
        known = _latest(self._committed, study, {})
        new = {n: self._digest(n, column) for n, column in codes.items() if n not in known}
        known.update(new)
        self._keep(bool(new))

    def check(self, study: bytes, codes: Mapping[str, NDArray[np.unsignedinteger]]) -> None:
        """Refuse columns that were committed in a study with other data."""
        known = self._committed.get(study.hex(), {})
        for name in known.keys() & codes.keys():
            if not hmac.compare_digest(known[name], self._digest(name, codes[name])):
                raise DataError(
                    f"the column {name!r} has changed since it was committed in this study: put "
                    "the earlier data back, or start a new study, in another folder ([study] "
                    'folder = "study2" in study.toml)'
                )

    def is_unchanged(
        self, study: bytes, codes: Mapping[str, NDArray[np.unsignedinteger]]
    ) -> bool | None:
        """Whether columns are those that a study committed; None if the study is not known."""
        if not (known := self._committed.get(study.hex())):
            return None
        return all(
            name in codes and hmac.compare_digest(digest, self._digest(name, codes[name]))
            for name, digest in known.items()
        )

    def changed(self, codes: Mapping[str, NDArray[np.unsignedinteger]]) -> list[str]:
        """Return the columns that have changed since the latest study that used them."""
        latest: dict[str, str] = {}
        for known in self._committed.values():
            latest |= known
        return [
            name
            for name, column in codes.items()
            if name in latest and not hmac.compare_digest(latest[name], self._digest(name, column))
        ]

    def seed(self, study: bytes) -> bytes:
        """Return this site's part of a study's common seed, which is drawn once."""
        new = study.hex() not in self._seeds
        seed = _latest(self._seeds, study, self.randomness.bytes(KEY_BYTES).hex() if new else "")
        self._keep(new)
        return bytes.fromhex(seed)

    def _digest(self, name: str, column: NDArray[np.unsignedinteger]) -> str:
        code = hmac.new(self._key, name.encode() + b"\0", hashlib.sha256)
        code.update(np.ascontiguousarray(column, "<u2").tobytes())
        return code.hexdigest()

    # ---- comparisons -----------------------------------------------------------------------------

    def met(self, peer: Party) -> None:
        """Forget the comparisons with a site that holds the same list: it did not guess it.

        The next write has this on disk: until then the file has more failures than there were.
        """
        self._unsaved |= self.meets.forget(peer)

    def save(self, *, always: bool = False) -> None:
        """Write what is not on disk yet."""
        self._keep(always)

    @property
    def known_ledger(self) -> tuple[int, bytes]:
        """The number of lines of the ledger that the memory knows, and the head of the last one."""
        chain = self.ledger
        return self._ledger_was if chain is None else (chain.lines, chain.head)

    # ---- alignments ------------------------------------------------------------------------------

    @property
    def alignments(self) -> int:
        """The number of alignments that began, in all studies, since the owner allowed more."""
        return self.meets.of(ALIGNMENTS).total

    def people_digest(self, identifiers: Identifiers) -> bytes:
        """Return a keyed digest of a list of people, in the order of the records."""
        code = hmac.new(self._key, "\0".join(identifiers.rules).encode(), hashlib.sha256)
        code.update(np.ascontiguousarray(identifiers.records, "<i8").tobytes())
        code.update(prefixed(*identifiers.forms))
        return code.digest()

    def run_of(self, contract: bytes, study: bytes) -> RunRecord | None:
        """Return what is remembered of a contract's last run, if it is of this study.

        A run whose columns or seed are forgotten cannot be resumed.
        """
        known = study.hex() in self._committed and study.hex() in self._seeds
        return self.runs.last(contract, study) if known else None

    # ---- what queries use up ---------------------------------------------------------------------

    def apply(self, effects: Effects, contract: bytes = b"", *, ends_run: bool = False) -> None:
        """Remember what a query uses up before its first byte is sent, all at once."""
        number, leaves, before = effects.number, effects.leaves, self._used
        if number is not None and number.analyst:
            if number.value <= (last := self.last_sum(number.analyst)):
                raise ValueError(f"the number of a sum must be above {last}, got {number.value}")
            self._sums[number.analyst.hex()] = number.value
        match leaves:
            case ByRule(tables, noise):
                self.released = self.released.plus(*tables)
                self.plain += 0 if noise else tables.tables
            case Freely(tables):
                self.released_freely = self.released_freely.plus(*tables)
            case Scored(records):
                self.scored += records
                self.plain += 1
            case RecordStatistics(None):
                self.plain += 1
            case Winners(bits) if contract:
                self.chosen += bits
                self.runs.charge(contract, bits)
        self.spent = self.spent if effects.noise is None else self.spent.plus(effects.noise.cost)
        if contract and ends_run:
            self.runs.end(contract)
        self._keep(ends_run or self._used != before)

    @property
    def left_plain(self) -> int:
        """How many results have left without noise: each table, and one for the sums of a query."""
        return self.plain + self.released_freely.tables

    @property
    def _used(self) -> tuple[object, ...]:
        """What queries have used up so far."""
        counts = self.released, self.released_freely, self.scored, self.chosen, self.plain
        return *counts, self.spent, dict(self._sums)

    # ---- sums and scores ---------------------------------------------------------------------

    def last_sum(self, analyst: bytes) -> int:
        """Return the number of the last sum with an analyst, by its public key; -1 before any."""
        return self._sums.get(analyst.hex(), self._older_sum)

    # ---- record sets -------------------------------------------------------------------------

    def digests(self, data: SiteData) -> Digests:
        """Return a keyed digest of each record's identifier, or the places of the records."""
        if data.ids is not None:
            texts = [self.person_digest(text) for text in data.ids.texts]
            return np.asarray(np.array(texts, np.uint64)[data.ids.places])
        for name, digest in self._frame_of(data).items():
            if not hmac.compare_digest(self._frame.get(name, digest), digest):
                raise ChangedDataError(
                    "its data have changed since it answered for its records, and the records have "
                    "no identifiers that distinguish them",
                    f"the column {name!r} has changed",
                )
        return np.arange(data.records, dtype=np.uint32)

    def _frame_of(self, data: SiteData) -> dict[str, str]:
        """Return the digests of all columns, if the records have no identifiers."""
        if data.ids is not None:
            return {}
        return {name: self._digest(name, column) for name, column in data.codes.items()}

    def person_digest(self, identifier: str) -> int:
        """Return the keyed digest of an identifier, as the record sets and snapshots have it."""
        digest = hashlib.blake2b(identifier.encode(), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def answer(self, data: SiteData, records: Digests) -> None:
        """Remember a set of the records of `data` before the site answers for it."""
        frame = self._frame | self._frame_of(data)
        is_new = self.sets.add(records) or frame != self._frame
        self._frame = frame
        self._keep(is_new)

    def hide(self, study: bytes, people: int) -> None:
        """Remember the size of a study whose people the site does not know, before it answers."""
        is_new = self._hidden.get(study.hex()) != people
        self._hidden[study.hex()] = people
        self._keep(is_new)

    def note_size(self, people: int) -> None:
        """Remember the size of a set of people whom the site knows, before it answers."""
        is_new = people not in self.sizes
        self._sizes = self.sizes | {people}
        self._keep(is_new)

    @property
    def sizes(self) -> set[int]:
        """The sizes of answered sets of known people; in an older memory, of its studies."""
        if self._sizes is None:
            self._sizes = {len(snapshot.people) for snapshot in self.changes.snapshots}
        return self._sizes

    def is_near_known(self, people: int, fewest: int) -> bool:
        """Whether a study of unknown people differs in size by a few from a set of known people."""
        return any(0 < abs(people - known) < fewest for known in self.sizes)

    def hides(self, study: bytes) -> bool:
        """Whether the site does not know who is in a study, or in any study if `study` is empty."""
        return study.hex() in self._hidden if study else bool(self._hidden)

    def is_near_hidden(self, study: bytes, people: int, fewest: int) -> bool:
        """Whether a record set differs in size by a few from another study of unknown people."""
        others = (known for name, known in self._hidden.items() if name != study.hex())
        return any(0 < abs(people - known) < fewest for known in others)

    # ---- changed values ----------------------------------------------------------------------

    def snapshot(self, data: SiteData, names: Iterable[str], records: Digests) -> Snapshot:
        """Return the values of some columns; `records` are the digests of all records of `data`."""
        return Snapshot.of(self._key, data, names, records)

    def values_of(self, variable: Variable) -> Values:
        """Return the keyed digests of a variable's states, and at the end of a missing value."""
        return digests_of(self._key, replace(variable, missing=True))

    def beside_earlier(self, data: SiteData, rule: str, fewest: int) -> Beside:
        """Return how data differ from those beside which a site refuses a study by a rule."""
        return Beside(*self.changes.beside(self._all_values(data, rule), fewest))

    def approved_beside(self, data: SiteData, rule: str, approved: bytes) -> frozenset[bytes]:
        """Return beside which earlier studies an owner has approved data, as digests."""
        return self.changes.approved(self._all_values(data, rule), approved)

    def _all_values(self, data: SiteData, rule: str) -> Snapshot:
        return replace(self.snapshot(data, data.variables, self.digests(data)), rule=rule)

    def keep_values(self, snapshot: Snapshot, variables: Iterable[Variable] = ()) -> None:
        """Remember the values of a study, and their states, before the site answers for them."""
        self.changes.keep(snapshot)
        states = self.states.copy()
        for variable in variables:
            earlier = states.get(variable.name, ())
            if not (earlier and (bins_of(earlier) or bins_of(variable.states))):
                states[variable.name] = tuple(dict.fromkeys([*earlier, *variable.states]))
        is_new = states != self.states or not self._has_values
        self.states, self._has_values = states, True
        self._keep(is_new)

    def _open_changes(self) -> None:
        beside = self._beside(".values")
        tag = hmac.new(self._key, b"changes", hashlib.sha256).digest()
        try:
            self.changes = Changes(beside, tag)
            if self._has_values and not self.changes.snapshots:
                raise ValueError(f"{beside} is missing: restore it beside {self.path}")
        except BaseException:
            self.close()
            raise

    def _beside(self, suffix: str) -> Path | None:
        """Return the file of this suffix beside the memory."""
        return None if self.path is None else self.path.with_name(self.path.name + suffix)

    # ---- the file ----------------------------------------------------------------------------

    def close(self) -> None:
        """Unlock the file for other processes."""
        self.changes.close()
        if self._file is not None:
            self._file.close()
            self._unsaved = False
        self._file = None

    def _keep(self, new: bool) -> None:
        """Write the file if there is something new, or if the last change was not written."""
        self._unsaved = self._unsaved or new
        if self._file is not None and self._unsaved:
            self._save(self._file)
        self._unsaved = False

    def _save(self, file: WholeFile) -> None:
        lines, head = self.known_ledger
        notes = {
            "format": FORMAT,
            "key": self._key.hex(),
            "committed": self._committed,
            "seeds": self._seeds,
            "frame": self._frame,
            "sets": self.sets.digests,
            **self.meets.as_json(),
            **self.runs.as_json(),
            "sums": [self._older_sum, self.spent.eps, self.spent.delta, self.scored],
            "numbers": self._sums,
            "zcdp": [self.spent.rho, self.spent.slack],
            "released": [*self.released, *self.released_freely],
            "chosen": self.chosen,
            "plain": self.plain,
            "together": self.together.as_json(),
            "values": self._has_values,
            "states": self.states,
            "hidden": self._hidden,
            "sizes": sorted(self.sizes),
            "writes": self.writes + 1,
            "ledger": [lines, head.hex()],
        }
        file.write(noted(notes, records=self.sets.records, atoms=self.sets.atoms))
        self.writes += 1

    def _read(self, path: Path) -> None:
        with read_noted(path, FORMAT, "is not a valid memory of a site") as (notes, file):
            self._load(notes, file["records"], file["atoms"])

    def _load(self, notes: Any, records: Digests, atoms: NDArray[np.uint32]) -> None:
        notes = {**OLDER, **notes}
        self._key = bytes.fromhex(notes["key"])
        self._committed = {study: _strings(known) for study, known in notes["committed"].items()}
        self._seeds, self._frame = _strings(notes["seeds"]), _strings(notes["frame"])
        self.meets.load(notes)
        self.together.load(notes["together"])
        self.runs.load(notes)
        self.sets = RecordSets(list(map(str, notes["sets"])), records, atoms)
        last, eps, delta, scored = notes["sums"]
        self._older_sum, self.scored = int(last), int(scored)
        self._sums, self._hidden = _numbers(notes["numbers"]), _numbers(notes["hidden"])
        # An older memory has no rho: that of all releases as one is an upper bound.
        rho, slack = notes.get("zcdp", Cost.of(eps, delta)[2:])
        self.spent = Cost(float(eps), float(delta), float(rho), float(slack))
        numbers = list(map(int, notes["released"]))
        self.released, self.released_freely = Released(*numbers[:2]), Released(*numbers[2:])
        # An older memory does not say which tables had noise: all of them are an upper bound.
        self.plain = int(notes.get("plain", numbers[0]))
        self.chosen, self._has_values = int(notes["chosen"]), bool(notes["values"])
        self.states = {name: tuple(map(str, known)) for name, known in notes["states"].items()}
        self._sizes = set(map(int, notes["sizes"])) if "sizes" in notes else None
        lines, head = notes["ledger"]
        self.writes, self._ledger_was = int(notes["writes"]), (int(lines), bytes.fromhex(head))
        arrays = records, atoms
        if len(self._key) != KEY_BYTES or any(a.ndim != 1 or a.dtype.kind != "u" for a in arrays):
            raise ValueError("its key or an array has a wrong size")
        if len(records) != len(atoms):
            raise ValueError("the numbers of records and of their atoms differ")
        numbers += [self.scored, self.chosen, self.plain]
        if not all(spent >= 0 for spent in (*self.spent, *numbers)):  # a nan is not
            raise ValueError("what was spent is negative or not a number")


def _strings(digests: Mapping[str, object]) -> dict[str, str]:
    """Return a mapping of digests, or refuse it: a damaged file can have any values there."""
    if not all(isinstance(text, str) for text in digests.values()):
        raise ValueError("a digest is not a text")
    return {name: str(text) for name, text in digests.items()}


def _numbers(counts: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(number) for name, number in counts.items()}


def _latest(studies: dict[str, T], study: bytes, new: T) -> T:
    """Return the value that is kept for a study, or `new`, and forget the oldest study.

    A forgotten study begins again with another part of its seed, and therefore with another mark.
    """
    kept = studies[study.hex()] = studies.pop(study.hex(), new)
    if len(studies) > MOST_STUDIES:
        del studies[next(iter(studies))]
    return kept
