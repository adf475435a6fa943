"""BIF files that pgmpy and pyAgrum read back to the same model, whatever the names.

Every byte of a name's UTF-8 outside ``[A-Za-z0-9_]`` is written ``%HH``; a name that then does not
begin with a letter, or is a keyword of the format, gets a leading ``_``. Names of nodes that differ
in case alone, which pgmpy's reader would take for one, have their capitals written ``%HH`` too. The
mapping is injective, and `read_bif` takes it back. Probabilities are written with all their digits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocols.variables import Variable
from vertibayes.network import Network, Structure

KEYWORDS = frozenset(
    ["network", "variable", "probability", "property", "type", "discrete", "default", "table"]
)
_PLAIN = re.compile(r"[A-Za-z0-9_]")
_NO_CAPITALS = re.compile(r"[a-z0-9_]")
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")


def encode_name(name: str, *, plain: re.Pattern[str] = _PLAIN) -> str:
    """Write a name in the letters that every reader takes."""
    letters = (
        chr(byte) if byte < 128 and plain.match(chr(byte)) else f"%{byte:02X}"
        for byte in name.encode()
    )
    text = "".join(letters)
    return text if text[:1].isalpha() and text.lower() not in KEYWORDS else "_" + text


def encode_nodes(names: Iterable[str]) -> dict[str, str]:
    """Write the names of nodes, so that no two differ in case alone."""
    codes = {name: encode_name(name) for name in names}
    alike = Counter(code.lower() for code in codes.values())
    return {
        name: code if alike[code.lower()] == 1 else encode_name(name, plain=_NO_CAPITALS)
        for name, code in codes.items()
    }


def decode_name(text: str) -> str:
    """Take `encode_name` back.

    Raises
    ------
    ValueError
        If the escapes are not UTF-8.
    """
    plain = text.removeprefix("_").encode()
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), plain).decode()


def write_bif(network: Network) -> str:
    """Return a network as the text of a BIF file."""
    return "\n".join([*_lines(network), ""])


def _lines(network: Network) -> Iterator[str]:
    codes = encode_nodes(network.structure.nodes)
    yield "network vertibayes {\n}"
    for node in network.structure.nodes:
        states = ", ".join(map(encode_name, network.variables[node].states))
        count = len(network.variables[node].states)
        yield f"variable {codes[node]} {{"
        yield f"  type discrete [ {count} ] {{ {states} }};\n}}"
    for node, parents in network.structure.parents.items():
        given = " | " + ", ".join(codes[parent] for parent in parents) if parents else ""
        yield f"probability ( {codes[node]}{given} ) {{"
        yield from _rows(network, parents, network.cpts[node])
        yield "}"


def _rows(network: Network, parents: tuple[str, ...], cpt: NDArray[np.float64]) -> Iterator[str]:
    columns = cpt.reshape(cpt.shape[0], -1).T.tolist()
    states = product(*(map(encode_name, network.variables[parent].states) for parent in parents))
    for given, column in zip(states, columns, strict=True):
        values = ", ".join(map(repr, column))
        yield f"  ({', '.join(given)}) {values};" if parents else f"  table {values};"


def read_bif(text: str) -> Network:
    """Read a BIF file that `write_bif` wrote, or one as plain.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    tokens = re.findall(r"[^\s{}()\[\],;|]+|[{}()\[\],;|]", text)
    states: dict[str, tuple[str, ...]] = {}
    parents: dict[str, tuple[str, ...]] = {}
    rows: dict[str, list[list[str]]] = {}
    try:
        for block in _blocks(tokens):
            if block[0] == "variable":
                states[block[1]] = tuple(
                    block[block.index("}") - _states(block) : block.index("}")]
                )
            elif block[0] == "probability":
                child, *given = block[1 : block.index("{")]
                parents[child] = tuple(given)
                rows[child] = _statements(block[block.index("{") + 1 :])
        if not states or set(parents) != set(states):
            raise ValueError("variables and probability blocks do not match")
        if len({decode_name(node) for node in states}) < len(states):
            raise ValueError("two variables of one name")
        cpts = {child: _cpt(child, parents[child], states, rows[child]) for child in parents}
    except (IndexError, KeyError, ValueError) as error:
        raise ValueError(f"no BIF file that can be read: {error}") from None
    names = {node: decode_name(node) for node in states}
    structure = Structure({names[c]: tuple(names[p] for p in ps) for c, ps in parents.items()})
    variables = {
        names[node]: Variable(names[node], tuple(map(decode_name, found)))
        for node, found in states.items()
    }
    return Network(structure, variables, {names[node]: cpt for node, cpt in cpts.items()})


def read_bif_file(path: str | Path) -> Network:
    """Read a BIF file; see `read_bif`."""
    return read_bif(Path(path).read_text(encoding="utf-8"))


def _blocks(tokens: list[str]) -> Iterator[list[str]]:
    """Cut tokens into blocks at the closing braces of depth 0; separators are left out."""
    block: list[str] = []
    depth = 0
    for token in tokens:
        depth += (token == "{") - (token == "}")
        if token == "}" and depth == 0:
            yield block
            block = []
        elif token not in "(),|[]":
            block.append(token)
    if block:
        raise ValueError("it is cut short")


def _states(block: list[str]) -> int:
    return int(block[block.index("discrete") + 1])


def _statements(tokens: list[str]) -> list[list[str]]:
    statements: list[list[str]] = [[]]
    for token in tokens:
        if token == ";":
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _cpt(
    child: str,
    parents: tuple[str, ...],
    states: dict[str, tuple[str, ...]],
    rows: list[list[str]],
) -> NDArray[np.float64]:
    cpt: NDArray[np.float64] = np.full([len(states[name]) for name in (child, *parents)], np.nan)
    by_column = cpt.reshape(cpt.shape[0], -1)
    for row in rows:
        given, values = ([], row[1:]) if not parents else (row[: len(parents)], row[len(parents) :])
        for parent, state in zip(parents, given, strict=True):
            if state not in states[parent]:
                raise ValueError(f"{parent} has no state {state}")
        place = [states[p].index(s) for p, s in zip(parents, given, strict=True)]
        column = np.ravel_multi_index(place, cpt.shape[1:]) if place else 0
        if len(values) != cpt.shape[0]:
            raise ValueError(
                f"{len(values)} probabilities for the {cpt.shape[0]} states of {child}"
            )
        by_column[:, column] = list(map(float, values))
    if np.isnan(cpt).any():
        raise ValueError(f"the table of {child} is not complete")
    return cpt
