"""XMLBIF 0.3 files (Cozman 1998), which pgmpy and pyAgrum read as the same model.

Almost any name is unchanged in XMLBIF. Control characters, characters that XML forbids, spaces at
either end and repeated spaces are escaped (`vertibayes.name_escapes`), because pyAgrum's reader
would drop them. pyAgrum reads the format from files named ``*.bifxml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from vertibayes.dag import Structure
from vertibayes.model import Model
from vertibayes.name_escapes import Escapes
from vertibayes_protocols.variables import Variable

NAMES = Escapes(
    "[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]|^ | $|(?<= ) ", re.compile(".+", re.DOTALL)
)


def write_xmlbif(network: Model) -> str:
    """Return a network as the text of an XMLBIF file."""
    head = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    return "\n".join(
        [*head, "<NAME>vertibayes</NAME>", *_lines(network), "</NETWORK>", "</BIF>", ""]
    )


def _lines(network: Model) -> Iterator[str]:
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


def _element(tag: str, name: str) -> str:
    return f"<{tag}>{escape(NAMES.encode(name), quote=False)}</{tag}>"


def parse_xmlbif(text: str) -> Model:
    """Read an XMLBIF file."""
    try:
        if "<!ENTITY" in text:
            raise ValueError("it declares entities")
        root = ElementTree.fromstring(text.encode())  # noqa: S314  (no entities)
        variables = {}
        for element in root.iter("VARIABLE"):
            name = _texts(element, "NAME")[0]
            if name in variables:
                raise ValueError(f"two variables have the name {name}")
            variables[name] = Variable(name, tuple(_texts(element, "OUTCOME")))
        parents: dict[str, tuple[str, ...]] = {}
        cpts = {}
        for element in root.iter("DEFINITION"):
            node = _texts(element, "FOR")[0]
            parents[node] = tuple(_texts(element, "GIVEN"))
            cpts[node] = _cpt(element, node, parents[node], variables)
        if not variables or set(parents) != set(variables):
            raise ValueError("variables and definitions do not match")
        structure = Structure({name: parents[name] for name in variables})
        return Model(structure, variables, cpts)
    except (ElementTree.ParseError, IndexError, ValueError) as error:
        raise ValueError(f"not a valid XMLBIF file: {error}") from None
    except KeyError as error:
        raise ValueError(f"not a valid XMLBIF file: no variable {error}") from None


def _texts(element: ElementTree.Element, tag: str) -> list[str]:
    """Return the names in the child elements with a tag."""
    texts = [(child.text or "").strip(" \t\r\n") for child in element.findall(tag)]
    if not texts and tag in ("NAME", "FOR"):
        raise ValueError(f"a {element.tag} has no {tag}")
    return [NAMES.decode(text) for text in texts]


def _cpt(
    definition: ElementTree.Element,
    node: str,
    parents: tuple[str, ...],
    variables: dict[str, Variable],
) -> NDArray[np.float64]:
    sizes = [len(variables[name].states) for name in (*parents, node)]
    values = [float(value) for value in (definition.findtext("TABLE") or "").split()]
    if len(values) != np.prod(sizes):
        raise ValueError(f"the table of {node} has {len(values)} numbers, not {np.prod(sizes)}")
    return np.moveaxis(np.array(values).reshape(sizes), -1, 0)
