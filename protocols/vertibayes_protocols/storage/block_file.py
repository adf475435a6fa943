"""A file for the masked columns of other sites, where they do not fit into memory."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator, MutableMapping
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from vertibayes_mpc.ring import Elements


class BlockFile(MutableMapping[Hashable, Elements]):
    """Blocks of columns in an unnamed temporary file, which is deleted with this object."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = cast("BinaryIO", tempfile.TemporaryFile(dir=folder))  # noqa: SIM115 (lives with this)
        self._places: dict[Hashable, tuple[int, tuple[int, ...], np.dtype[np.unsignedinteger]]] = {}
        self._end = 0

    def __setitem__(self, block: Hashable, columns: Elements) -> None:
        old = self._places.get(block)
        fits = old is not None and int(np.prod(old[1])) * old[2].itemsize >= columns.nbytes
        at = old[0] if old is not None and fits else self._end
        self._file.seek(at)
        self._file.write(np.ascontiguousarray(columns).data)
        self._places[block] = at, columns.shape, columns.dtype
        self._end = max(self._end, at + columns.nbytes)

    def __getitem__(self, block: Hashable) -> Elements:
        at, shape, dtype = self._places[block]
        self._file.seek(at)
        count = int(np.prod(shape))
        data = self._file.read(count * dtype.itemsize)
        return np.frombuffer(data, dtype, count).reshape(shape)

    def __delitem__(self, block: Hashable) -> None:
        del self._places[block]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
