"""BIF files that pgmpy and pyAgrum read as the same model, whatever its names.

A name is unchanged if both readers accept it: it has letters, digits, ``_``, ``.``, ``-``, ``?``
and ``%``, and begins with a letter, with ``_``, or with digits before a letter other than ``e``; a
state may also be an integer. Other names are escaped (`vertibayes.name_escapes`), and `parse_bif`
reverses the escapes. Capitals are escaped too in names of nodes that differ only in case, because
pgmpy's reader does not distinguish them. Probabilities are written with all digits.

bnlearn's ``read.bif`` accepts these states, but only letters, digits and ``_`` in names of nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vertibayes.dag import Structure
from vertibayes.model import Model
from vertibayes.name_escapes import Escapes
from vertibayes_protocols.variables import Variable

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
    """Return the escaped names of nodes, no two of which differ only in case.

    Examples
    --------
    >>> encode_nodes(["age", "age (years)", "Age"])
    {'age': 'age', 'age (years)': 'age_x0020__x0028_years_x0029_', 'Age': '_x0041_ge'}
    """
    codes = {name: NODES.encode(name) for name in names}
    alike = Counter(code.lower() for code in codes.values())
    return {
        name: code if alike[code.lower()] == 1 else _LOWER_CASE_NODES.encode(name)
        for name, code in codes.items()
    }


def write_bif(network: Model) -> str:
    """Return a network as the text of a BIF file.

    Parameters
    ----------
    network : Network
        The network.

    Returns
    -------
    text : str
        The text of the file.

    Examples
    --------
    >>> rain = Variable("rain", ("no", "yes"))
    >>> network = Model(Structure({"rain": ()}), {"rain": rain}, {"rain": np.array([0.75, 0.25])})
    >>> print(write_bif(network), end="")
    network vertibayes {
    }
    variable rain {
      type discrete [ 2 ] { no, yes };
    }
    probability ( rain ) {
      table 0.75, 0.25;
    }
    >>> parse_bif(write_bif(network)).variables == network.variables
    True
    """
    return "\n".join([*_lines(network), ""])


def _lines(network: Model) -> Iterator[str]:
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
        escaped = [map(STATES.encode, network.variables[parent].states) for parent in parents]
        for combination, row in zip(product(*escaped), network.rows(node), strict=True):
            values = ", ".join(map(repr, row))
            yield f"  ({', '.join(combination)}) {values};" if parents else f"  table {values};"
        yield "}"


def parse_bif(text: str) -> Model:
    """Read a BIF file; see `vertibayes.read_bif`."""
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
        return Model(structure, variables, cpts)
    except (IndexError, KeyError, ValueError) as error:
        raise ValueError(f"not a valid BIF file: {error}") from None


def _declarations(
    text: str,
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], dict[str, list[list[str]]]]:
    """Return the states of each node, its parents and the rows of its CPT."""
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


def _blocks(tokens: list[str]) -> Iterator[list[str]]:
    """Divide tokens into blocks, which end at a closing brace of depth 0; omit separators."""
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
        raise ValueError(f"{block[1]} has {len(states)} states, but it declares {block[start]}")
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
