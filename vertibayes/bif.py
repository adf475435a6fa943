"""BIF and XMLBIF files that pgmpy and pyAgrum read as the same model, whatever its names.

A character that a reader does not accept becomes ``_xHHHH_``, its code point in at least four
hexadecimal digits, as in names in SQL/XML (ISO/IEC 9075-14, 9.1): ``age (years)`` becomes
``age_x0020__x0028_years_x0029_``. If a reader accepts all characters of a name but not the whole
name, the name gets a leading ``_``: ``1.5`` becomes ``_1.5``. All other names are unchanged. The
mapping is injective, and `Escapes.decode` reverses it. Probabilities are written with all digits.

In BIF, a name is unchanged if it has letters, digits, ``_``, ``.``, ``-``, ``?`` and ``%``, and
begins with a letter, with ``_``, or with digits before a letter other than ``e``; a state may also
be an integer. Capitals are escaped too in names of nodes that differ only in case, because pgmpy's
reader does not distinguish them. bnlearn's ``read.bif`` accepts these states, but only letters,
digits and ``_`` in names of nodes. Properties, which all readers skip, hold the names and states
that are escaped, for people who read the file.

In XMLBIF 0.3 (Cozman 1998), almost any name is unchanged. Control characters, characters that XML
forbids, spaces at either end and repeated spaces are escaped, because pyAgrum's reader would drop
them. pyAgrum reads the format from files named ``*.bifxml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby, product
from json import dumps
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from vertibayes.dag import Structure
from vertibayes.model import Model, place_of
from vertibayes_protocols.variables import Variable

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4,6})_")
_LIKE_ESCAPED = r"_(?=x[0-9A-Fa-f]{4})"
_LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Escapes:
    """The names that the readers of a format accept.

    Examples
    --------
    >>> letters = Escapes("[^A-Za-z0-9_.]", re.compile("[A-Za-z_].*"))
    >>> [letters.encode(name) for name in ("blood.pressure", "1.5", "a-b")]
    ['blood.pressure', '_1.5', 'a_x002D_b']
    >>> letters.decode("a_x002D_b")
    'a-b'
    """

    refused: str  # a regular expression that matches each character that a reader does not accept
    taken: re.Pattern[str]
    exempt: re.Pattern[str] = re.compile(r"(?!)")

    def encode(self, name: str) -> str:
        """Return a name in the form that readers accept."""
        if self.exempt.fullmatch(name):
            return name
        refused = f"{_LIKE_ESCAPED}|{self.refused}"
        text = re.sub(refused, lambda found: f"_x{ord(found[0]):04X}_", name)
        return "_" + text if self._needs_mark(text) else text

    def decode(self, text: str) -> str:
        """Return the name that `encode` escaped."""
        if text.startswith("_") and self._needs_mark(text[1:]):
            text = text[1:]
        return _ESCAPED.sub(_unescape, text)

    def _needs_mark(self, text: str) -> bool:
        """Whether a name needs a leading ``_``; a name that looks as if it had one needs it too."""
        if self.exempt.fullmatch(text):
            return False
        if not self.taken.fullmatch(text):
            return True
        return text.startswith("_") and self._needs_mark(text[1:])


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if code <= _LAST_CODE_POINT else match[0]


def _model(
    variables: Mapping[str, Variable],
    parents: Mapping[str, tuple[str, ...]],
    cpts: Mapping[str, NDArray[np.float64]],
) -> Model:
    if not variables:
        raise ValueError("it has no variables")
    if set(parents) != set(variables):
        raise ValueError("variables and their probabilities do not match")
    return Model(Structure(parents), variables, cpts)


# ---- BIF -----------------------------------------------------------------------------------------

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

    Returns
    -------
    text : str

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
    return "\n".join([*_bif_lines(network), ""])


def _bif_lines(network: Model) -> Iterator[str]:
    codes = encode_nodes(network.structure.nodes)
    states = {n: [*map(STATES.encode, v.states)] for n, v in network.variables.items()}
    yield "network vertibayes {\n}"
    for node in network.structure.nodes:
        yield f"variable {codes[node]} {{"
        yield f"  type discrete [ {len(states[node])} ] {{ {', '.join(states[node])} }};"
        if codes[node] != node:
            yield f"  property name = {_quoted(node)};"
        if states[node] != [*network.variables[node].states]:
            yield f"  property states = {', '.join(map(_quoted, network.variables[node].states))};"
        yield "}"
    for node, parents in network.structure.parents.items():
        given = " | " + ", ".join(codes[parent] for parent in parents) if parents else ""
        yield f"probability ( {codes[node]}{given} ) {{"
        combinations = product(*(states[parent] for parent in parents))
        for combination, row in zip(combinations, network.rows(node), strict=True):
            values = ", ".join(map(repr, row))
            yield f"  ({', '.join(combination)}) {values};" if parents else f"  table {values};"
        yield "}"


def _quoted(name: str) -> str:
    """Return a name as a string of JSON in which all marks that BIF uses are escaped."""
    return re.sub(r"[;{}()\[\],|/]", lambda mark: f"\\u{ord(mark[0]):04x}", dumps(name))


def parse_bif(text: str) -> Model:
    """Read a BIF file; see `vertibayes.read_bif`."""
    try:
        variables, parents, cpts = {}, {}, {}  # by the names and states of the file
        for block in _blocks(re.findall(r"[^\s{}()\[\],;|]+|[{}()\[\],;|]", text)):
            if block[0] == "variable":
                variables[block[1]] = Variable(block[1], _states(block))
            elif block[0] == "probability":
                start = block.index("{")
                node, *given = block[1:start]
                parents[node] = tuple(given)
                cpts[node] = block[start + 1 :]
        names = {node: NODES.decode(node) for node in variables}
        if len(set(names.values())) < len(names):
            raise ValueError("two variables have the same name")
        return _model(
            {
                names[node]: Variable(names[node], tuple(map(STATES.decode, variable.states)))
                for node, variable in variables.items()
            },
            {names[node]: tuple(names[parent] for parent in own) for node, own in parents.items()},
            {names[n]: _bif_cpt(variables[n], parents[n], variables, cpts[n]) for n in parents},
        )
    except (IndexError, KeyError, ValueError) as error:
        raise ValueError(f"not a valid BIF file: {error}") from None


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
        raise ValueError("it is cut short, or not in blocks of braces")


def _states(block: list[str]) -> tuple[str, ...]:
    """Return the states of a variable: they follow ``discrete 3 {``."""
    start = block.index("discrete") + 1
    states = tuple(block[start + 2 : block.index("}")])
    if int(block[start]) != len(states):
        raise ValueError(f"{block[1]} has {len(states)} states, but it declares {block[start]}")
    return states


def _bif_cpt(
    child: Variable, parents: tuple[str, ...], variables: Mapping[str, Variable], tokens: list[str]
) -> NDArray[np.float64]:
    """Return a CPT from the statements of its block: the parents' states, and then a column."""
    sizes = [len(variables[parent].states) for parent in parents]
    cpt: NDArray[np.float64] = np.full([len(child.states), *sizes], np.nan)
    rows = [list(row) for is_end, row in groupby(tokens, ";".__eq__) if not is_end]
    for row in rows:
        given, values = row[: len(parents)], row[len(parents) or 1 :]
        pairs = zip(parents, given, strict=True)
        place = [place_of(variables[parent], state) for parent, state in pairs]
        if len(values) != len(child.states):
            raise ValueError(
                f"{len(values)} probabilities for the {len(child.states)} states of {child.name}"
            )
        cpt.T[tuple(reversed(place))] = list(map(float, values))
    if np.isnan(cpt).any():
        raise ValueError(f"the table of {child.name} is not complete")
    return cpt


# ---- XMLBIF --------------------------------------------------------------------------------------

XML_NAMES = Escapes(
    "[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]|^ | $|(?<= ) ", re.compile(".+", re.DOTALL)
)


def write_xmlbif(network: Model) -> str:
    """Return a network as the text of an XMLBIF file."""
    return "\n".join([*_xml_lines(network), ""])


def _xml_lines(network: Model) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>'
    yield "<NAME>vertibayes</NAME>"
    for node in network.structure.nodes:
        yield '<VARIABLE TYPE="nature">'
        yield _element("NAME", node)
        yield from (_element("OUTCOME", state) for state in network.variables[node].states)
        yield "</VARIABLE>"
    for node, parents in network.structure.parents.items():
        yield "<DEFINITION>"
        yield _element("FOR", node)
        yield from (_element("GIVEN", parent) for parent in parents)
        rows = (" ".join(map(repr, row)) for row in network.rows(node))
        yield "<TABLE>" + "\n".join(rows) + "</TABLE>"
        yield "</DEFINITION>"
    yield "</NETWORK>\n</BIF>"


def _element(tag: str, name: str) -> str:
    return f"<{tag}>{escape(XML_NAMES.encode(name), quote=False)}</{tag}>"


def parse_xmlbif(text: str) -> Model:
    """Read an XMLBIF file."""
    try:
        if "<!ENTITY" in text:
            raise ValueError("it declares entities")
        root = ElementTree.fromstring(text.encode())  # noqa: S314  (no entities)
        variables, parents, cpts = {}, {}, {}
        for element in root.iter("VARIABLE"):
            name = _texts(element, "NAME")[0]
            if name in variables:
                raise ValueError(f"two variables have the name {name}")
            variables[name] = Variable(name, tuple(_texts(element, "OUTCOME")))
        for element in root.iter("DEFINITION"):
            node = _texts(element, "FOR")[0]
            parents[node] = tuple(_texts(element, "GIVEN"))
            sizes = [len(variables[name].states) for name in (*parents[node], node)]
            values = [float(value) for value in (element.findtext("TABLE") or "").split()]
            if len(values) != np.prod(sizes):
                given = f"{len(values)} numbers, not {np.prod(sizes)}"
                raise ValueError(f"the table of {node} has {given}")
            cpts[node] = np.moveaxis(np.array(values).reshape(sizes), -1, 0)
        in_order = {name: parents[name] for name in variables if name in parents}
        return _model(variables, in_order, cpts)
    except (ElementTree.ParseError, IndexError, ValueError) as error:
        raise ValueError(f"not a valid XMLBIF file: {error}") from None
    except KeyError as error:
        raise ValueError(f"not a valid XMLBIF file: no variable {error}") from None


def _texts(element: ElementTree.Element, tag: str) -> list[str]:
    """Return the names in the child elements with a tag."""
    texts = [(child.text or "").strip(" \t\r\n") for child in element.findall(tag)]
    if not texts and tag in ("NAME", "FOR"):
        raise ValueError(f"a {element.tag} has no {tag}")
    return [XML_NAMES.decode(text) for text in texts]
