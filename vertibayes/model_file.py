"""Models as files: ``model.json``, which has names and numbers unchanged, BIF and XMLBIF.

``model.json`` has one object per node::

    {"format": "vertibayes-network", "version": 1, "nodes": [
     {"name": "HR", "states": ["LOW", "HIGH"], "missing_state": false, "parents": ["SAO2", "CO"],
      "unseen": 0, "probabilities": [[0.9, 0.1], [0.25, 0.75], ...]}, ...]}

Each row of ``probabilities`` is the distribution of the node given one combination of its parents'
states; the last parent's state changes fastest. ``missing_state`` says whether the last state is
that of missing values, and ``unseen`` is the number of combinations that no record had. Version 2
also has ``fixed``, a list of the parents whose arrow experts fixed; a network without such arrows
is written as version 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes.bif import parse_bif, parse_xmlbif, write_bif, write_xmlbif
from vertibayes.dag import Structure
from vertibayes.model import Model
from vertibayes_protocols.storage.whole_file import replacing
from vertibayes_protocols.variables import Variable

FORMAT, VERSIONS = "vertibayes-network", (1, 2)


def write_json(network: Model) -> str:
    """Return a network as the text of a ``model.json``."""
    nodes, version = [], VERSIONS[bool(network.fixed)]
    for node, parents in network.structure.parents.items():
        about = {
            "name": node,
            "states": network.variables[node].states,
            "missing_state": node in network.missing_states,
            "parents": parents,
            "unseen": network.unseen.get(node, 0),
        }
        if network.fixed:
            about["fixed"] = [parent for parent in parents if (parent, node) in network.fixed]
        rows = map(json.dumps, network.rows(node))
        text = json.dumps(about, ensure_ascii=False)[:-1]
        nodes.append(f' {text},\n  "probabilities": [\n   ' + ",\n   ".join(rows) + "]}")
    head = f'{{"format": "{FORMAT}", "version": {version}, "nodes": [\n'
    return head + ",\n".join(nodes) + "\n]}\n"


def parse_json(text: str) -> Model:
    """Read a ``model.json``."""
    try:
        model = json.loads(text)
        if not isinstance(model, dict) or model.get("format") != FORMAT:
            raise ValueError(f'it is another kind of file; expected "format": "{FORMAT}"')
        version = model.get("version")
        if version not in VERSIONS:
            raise ValueError(
                f"its version is {version}, expected {' or '.join(map(str, VERSIONS))}"
            )
        return _network(model["nodes"], with_fixed=version > 1)
    except KeyError as error:
        raise ValueError(f"not a valid model.json: {error} is missing") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"not a valid model.json: {error}") from None


def _network(nodes: list[Mapping[str, Any]], *, with_fixed: bool) -> Model:
    variables = {node["name"]: Variable(node["name"], _names(node, "states")) for node in nodes}
    if not variables or len(variables) < len(nodes):
        raise ValueError("it has no nodes, or two of the same name; expected a name for each")
    structure = Structure({node["name"]: _names(node, "parents") for node in nodes})
    cpts = {node["name"]: _cpt(node, variables) for node in nodes}
    unseen = {node["name"]: int(node["unseen"]) for node in nodes}
    missing = frozenset(node["name"] for node in nodes if node["missing_state"])
    arrows = ((p, n["name"]) for n in nodes if with_fixed for p in _names(n, "fixed"))
    return Model(structure, variables, cpts, unseen, missing, frozenset(arrows))


def _names(node: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = node[key]
    if not isinstance(names, list) or not all(isinstance(n, str) for n in [node["name"], *names]):
        raise TypeError(f"the {key} of {node['name']!r} must be a list of texts")
    return tuple(names)


def _cpt(node: Mapping[str, Any], variables: Mapping[str, Variable]) -> NDArray[np.float64]:
    rows = np.array(node["probabilities"], np.float64)
    sizes = [len(variables[name].states) for name in (*node["parents"], node["name"])]
    expected = int(np.prod(sizes[:-1], dtype=int)), sizes[-1]
    if rows.shape != expected:
        raise ValueError(
            f"the probabilities of {node['name']!r} have the shape {rows.shape}; "
            f"expected {expected}"
        )
    return np.moveaxis(rows.reshape(sizes), -1, 0)


WRITERS: Mapping[str, Callable[[Model], str]] = {
    ".json": write_json,
    ".bif": write_bif,
    ".bifxml": write_xmlbif,
    ".xmlbif": write_xmlbif,
}
_READERS = dict(zip(WRITERS, (parse_json, parse_bif, parse_xmlbif, parse_xmlbif), strict=True))


def load_model(path: str | Path) -> Model:
    """Read a model from a file; see `vertibayes.read_model`."""
    path = Path(path)
    try:
        if path.is_dir():
            raise ValueError("it is a folder; specify a file in it, as model.json")
        return _READERS[_ending(path)](path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise ValueError(f"{path}: {reason}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a model: it is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def save_model(network: Model, path: str | Path) -> None:
    """Write a model to a file: ``.json``, ``.bif``, ``.bifxml`` or ``.xmlbif``.

    An existing file is replaced when the new file is complete.
    """
    path = Path(path)
    try:
        text = WRITERS[_ending(path)](network)
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _ending(path: Path) -> str:
    if path.suffix.lower() not in WRITERS:
        raise ValueError(f"the name of a model must end in {', '.join(WRITERS)}")
    return path.suffix.lower()
