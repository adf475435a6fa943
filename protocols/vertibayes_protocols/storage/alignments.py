"""Alignments that a site keeps: where its people are in each study, in a file for each study.

An alignment is made once for a study. A site that resumes the study continues with what it has
kept: a second run would spend another alignment, and could have another result.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.storage.whole_file import (
    OLDEST,
    NewerFormatError,
    check_format,
    write_whole,
)

FORMAT = 1


@dataclass(frozen=True)
class KeptAlignment:
    """What a site keeps of an alignment."""

    alignment: bytes  # the digest of the alignment, of which the sizes are no part
    people: bytes  # the keyed digest of the site's list of people
    records: int  # the number of people in the study
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)  # at level 1 ``places``


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
        notes = {
            "format": FORMAT,
            "alignment": kept.alignment.hex(),
            "people": kept.people.hex(),
            "records": kept.records,
        }
        encoded: Any = np.frombuffer(json.dumps(notes).encode(), np.uint8)
        arrays: dict[str, Any] = dict(kept.arrays)
        buffer = io.BytesIO()
        np.savez(buffer, notes=encoded, **arrays)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(_path(self._folder, study), buffer.getvalue())

    def of(self, study: bytes) -> KeptAlignment | None:
        """Return the alignment of a study; None if the site has none."""
        if self._folder is None:
            return self._kept.get(study)
        path = _path(self._folder, study)
        return _read(path) if path.exists() else None


def _path(folder: Path, study: bytes) -> Path:
    return folder / f"{study.hex()}.npz"


def _read(path: Path) -> KeptAlignment:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            notes = json.loads(file["notes"].tobytes())
            check_format(path, notes.get("format", OLDEST), FORMAT)
            arrays = {name: file[name] for name in file.files if name != "notes"}
        digests = bytes.fromhex(notes["alignment"]), bytes.fromhex(notes["people"])
        return KeptAlignment(*digests, int(notes["records"]), arrays)
    except NewerFormatError:
        raise
    except Exception as error:  # a damaged file can raise any error
        raise ValueError(f"{path} does not have the alignment of a study: {error}") from None
