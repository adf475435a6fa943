"""The pages of the API reference: which objects they show, by their place in the sources.

`mkdocstrings` fills them with the docstrings, when the site is built. The list of the public names
is that of `vertibayes/__init__.pyi` and `__all__` of the other packages, read without importing
them: an environment that builds the site needs none of the project's dependencies.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"vertibayes_mpc": "mpc", "vertibayes_protocols": "protocols"}

PRIMITIVES = (
    "masked_tables",
    "shuffled_tables",
    "commitments",
    "alignment",
    "lookups",
    "table_lookups",
    "argmax",
    "scalar_product",
    "masked_sum",
    "additive_scheme",
    "product_scheme",
    "membership",
    "paillier",
    "noise",
    "oracles",
)
FOUNDATIONS = ("rounds", "scheduler", "randomness", "ring", "sharing", "cpace", "shamir", "errors")
# The parts of `vertibayes_protocols` that the documents speak of, from a session to its transport.
PARTIES = (
    "session",
    "opening",
    "open_study",
    "federation",
    "parties",
    "roles",
    "policy",
    "ledger",
    "contract",
    "release",
    "promise",
    "schema",
    "local_reports",
    "seal",
    "transports.serving",
    "transports.mailbox",
    "transports.network",
    "transports.relay_link",
    "transports.route",
    "errors",
)


def pages() -> dict[str, str]:
    """Return the pages by name."""
    return {
        "index.md": INDEX,
        "vertibayes.md": page(
            "vertibayes", VERTIBAYES, [f"{home}.{n}" for n, home in sorted(homes().items())]
        ),
        "sklearn.md": package("vertibayes.sklearn"),
        "pgmpy.md": package("vertibayes.pgmpy"),
        **{f"mpc_{name}.md": package(f"vertibayes_mpc.{name}") for name in PRIMITIVES},
        "mpc_foundations.md": page(
            "Foundations of the primitives",
            "What all protocols are written in: rounds, rings, randomness, shares, errors.",
            [f"vertibayes_mpc.{name}" for name in FOUNDATIONS],
        ),
        "parties.md": page(
            "vertibayes_protocols",
            "Sessions, parties, studies and transports.",
            [f"vertibayes_protocols.{name}" for name in PARTIES],
        ),
    }


INDEX = f"""# API reference

Made of the docstrings of this version.

- [vertibayes](vertibayes.md): data, counters, learners, networks, predictions.
- [vertibayes.sklearn](sklearn.md): estimators on data frames.
- [vertibayes.pgmpy](pgmpy.md): pgmpy's searches and estimators over a federation.
- [vertibayes_protocols](parties.md): sessions, parties, studies and transports.
- [Foundations of the primitives](mpc_foundations.md): rounds, rings, randomness, shares, errors.

The primitives, each of which can be used alone:

{chr(10).join(f"- [vertibayes_mpc.{name}](mpc_{name}.md)" for name in PRIMITIVES)}
"""
VERTIBAYES = "Each name is imported from `vertibayes`, wherever it is defined."


def package(name: str) -> str:
    """Return the page of a package: its docstring, and what it exports."""
    members = sorted(exported(name))
    return f"# {name}\n\n{block(name, 'members: []', 'show_root_heading: false')}" + "".join(
        block(f"{name}.{member}") for member in members
    )


def page(title: str, text: str, objects: Iterable[str]) -> str:
    """Return a page of several objects."""
    return f"# {title}\n\n{text}\n\n" + "".join(block(name) for name in objects)


def block(name: str, *options: str) -> str:
    """Return the lines that mkdocstrings replaces by an object's documentation."""
    lines = "".join(f"      {option}\n" for option in options)
    return f"::: {name}\n" + (f"    options:\n{lines}" if lines else "") + "\n"


def homes() -> dict[str, str]:
    """Return the public names of `vertibayes`, each with the module that defines it."""
    stub = (ROOT / "vertibayes" / "__init__.pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


def exported(package: str) -> list[str]:
    """Return `__all__` of a package."""
    folder = ROOT / FOLDERS.get(package.partition(".")[0], "")
    source = folder.joinpath(*package.split("."), "__init__.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]:
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{package} assigns no __all__")
