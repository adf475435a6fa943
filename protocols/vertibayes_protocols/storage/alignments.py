"""Alignments that a site keeps: where its people are in each study, in a file for each study.

An alignment is made once for a study. A site that resumes the study continues with what it has
kept: a second run would spend another alignment, and could have another result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vertibayes_protocols.storage.whole_file import noted, read_noted, write_whole

FORMAT = 1


@dataclass(frozen=True)
class KeptAlignment:
    """What a site keeps of an alignment."""

    alignment: bytes  # the digest of the alignment, of which the sizes are no part
    people: bytes  # the keyed digest of the site's list of people
    records: int  # the number of people in the study
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)  # at level 1 ``places``

    @property
    def own(self) -> int | None:
        """How many of the site's people are in the study; None if the site does not know it."""
        places = self.arrays.get("places")
        return None if places is None else int((places >= 0).sum())


class Alignments:
    """The alignments of a site, by study."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._kept: dict[bytes, KeptAlignment] = {}

    def keep(self, study: bytes, kept: KeptAlignment) -> None:
        """Keep the alignment of a study; it is on disk when this returns."""
        if self._folder is None:
            self._kept[study] = kept
            return
        digests = {"alignment": kept.alignment.hex(), "people": kept.people.hex()}
        notes = {"format": FORMAT, **digests, "records": kept.records}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._folder / f"{study.hex()}.npz", noted(notes, **kept.arrays))

    def of(self, study: bytes) -> KeptAlignment | None:
        """Return the alignment of a study; None if the site has none."""
        if self._folder is None:
            return self._kept.get(study)
        path = self._folder / f"{study.hex()}.npz"
        if not path.exists():
            return None
        with read_noted(path, FORMAT, "does not have the alignment of a study") as (notes, file):
            digests = bytes.fromhex(notes["alignment"]), bytes.fromhex(notes["people"])
            arrays = {name: file[name] for name in file if name != "notes"}
            return KeptAlignment(*digests, int(notes["records"]), arrays)
