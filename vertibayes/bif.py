"""BIF files that pgmpy and pyAgrum read back to the same model, whatever the names.

Names stay as they are wherever both readers take them: letters, digits, ``_``, ``.``, ``-``, ``?``
and ``%``, from a letter, ``_``, or digits followed by a letter other than ``e``; integers too, as
states. `vertibayes.name_escapes` says how other names are written; `read_bif` reverses it. Names of
nodes that differ only in case, which pgmpy's reader would take for one, have their capitals
escaped. Probabilities are written with all their digits.

bnlearn's ``read.bif`` takes states as they are here, but in names of nodes letters, digits and
``_`` alone.
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
from vertibayes.name_escapes import Escapes
from vertibayes.network import Network, Structure

_KEYWORDS = "network|variable|probability|property|type|discrete|default|table"
_TAKEN = re.compile(
    rf"(?!(?:{_KEYWORDS})\Z)(?:[0-9]+(?![eE]))?[A-Za-z_][A-Za-z0-9_.?%-]*", re.ASCII
)
# pgmpy looks for the keywords table and default, followed by a number, inside the names of nodes.
_IN_NODES = r"t(?=able[-.eE0-9])|d(?=efault[-.eE0-9])"
STATES = Escapes(r"[^A-Za-z0-9_.?%-]", _TAKEN, re.compile(r"[+-]?[0-9]+"))
NODES = Escapes(rf"[^A-Za-z0-9_.?%-]|{_IN_NODES}", _TAKEN)
_LOWER_CASE_NODES = Escapes(rf"[^a-z0-9_.?%-]|{_IN_NODES}", _TAKEN)


def encode_nodes(names: Iterable[str]) -> dict[str, str]:
    """Write the names of nodes, so that no two differ in case alone."""
    codes = {name: NODES.encode(name) for name in names}
    alike = Counter(code.lower() for code in codes.values())
    return {
        name: code if alike[code.lower()] == 1 else _LOWER_CASE_NODES.encode(name)
        for name, code in codes.items()
    }


def write_bif(network: Network) -> str:
    """Return a network as the text of a BIF file."""
    return "\n".join([*_lines(network), ""])


def _lines(network: Network) -> Iterator[str]:
    codes = encode_nodes(network.structure.nodes)
    yield "network vertibayes {\n}"
    for node in network.structure.nodes:
        states = ", ".join(map(STATES.encode, network.variables[node].states))
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
    states = product(*(map(STATES.encode, network.variables[parent].states) for parent in parents))
    for given, column in zip(states, columns, strict=True):
        values = ", ".join(map(repr, column))
        yield f"  ({', '.join(given)}) {values};" if parents else f"  table {values};"


def read_bif(text: str) -> Network:
    """Read a BIF file that `write_bif` wrote, or one as plain.

    Raises
    ------
    ValueError
        If it is not a valid BIF file.
    """
    try:
        states, parents, rows = _declarations(text)
        names = {node: NODES.decode(node) for node in states}
        if not states or set(parents) != set(states):
            raise ValueError("variables and probability blocks do not match")
        if len(set(names.values())) < len(names):
            raise ValueError("two variables have the same name")
        cpts = {names[n]: _cpt(n, parents[n], states, rows[n]) for n in parents}
        structure = Structure({names[c]: tuple(names[p] for p in ps) for c, ps in parents.items()})
        variables = {
            names[node]: Variable(names[node], tuple(map(STATES.decode, declared)))
            for node, declared in states.items()
        }
        return Network(structure, variables, cpts)
    except (IndexError, KeyError, ValueError) as error:
        raise ValueError(f"not a valid BIF file: {error}") from None


def _declarations(
    text: str,
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], dict[str, list[list[str]]]]:
    """Return, of each node, its states, its parents and the rows of its CPT."""
    states: dict[str, tuple[str, ...]] = {}
    parents: dict[str, tuple[str, ...]] = {}
    rows: dict[str, list[list[str]]] = {}
    for block in _blocks(re.findall(r"[^\s{}()\[\],;|]+|[{}()\[\],;|]", text)):
        if block[0] == "variable":
            states[block[1]] = _states(block)
        elif block[0] == "probability":
            child, *given = block[1 : block.index("{")]
            parents[child] = tuple(given)
            rows[child] = _statements(block[block.index("{") + 1 :])
    return states, parents, rows


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


def _states(block: list[str]) -> tuple[str, ...]:
    """Return the states of a variable: they follow ``discrete 3 {``."""
    start = block.index("discrete") + 1
    states = tuple(block[start + 2 : block.index("}")])
    if int(block[start]) != len(states):
        raise ValueError(f"{block[1]} has {len(states)} states, it declares {block[start]}")
    return states


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
