"""Count the house: lines, code and words of a checkout, and the lines of each kind of query.

    python benchmarks/house.py [FOLDER] [--json FILE] [--against FOLDER_OR_JSON]

The packages are found wherever they lie in the checkout. A package's row sums its folders, whose
rows follow. Code is a line of a Python file that has more than an import, a docstring or a comment.
Words are those of the Markdown pages. With `--against`, each figure is shown before, after and as
their difference.

A kind of query is a class that derives from `session.Query` and has a `kind`. Its own modules are
those that define the class (in older commits also its `Conversation`), and the modules of
`queries/` that they import, directly or through others, and that no other kind imports; imports are
not followed through another kind's modules. What several kinds or none of them import is the last
row, `shared`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections import Counter
from pathlib import Path

PACKAGES = ("vertibayes_mpc", "vertibayes_protocols", "vertibayes")
PARTIES = "vertibayes_protocols"
QUERIES = f"{PARTIES}.queries"
SILENT = ["COMMENT", "DEDENT", "ENCODING", "ENDMARKER", "INDENT", "NEWLINE", "NL"]
Counts = dict[str, Counter[str]]


def package(root: Path, name: str) -> Path:
    """Return the folder of a package: at the top of a checkout, or one folder below."""
    places = (root / name, *root.glob(f"[!.]*/{name}"))
    return next(place for place in places if (place / "__init__.py").exists())


def measured(path: Path) -> dict[str, int]:
    """Return the lines of a Python file, and those of code."""
    text, code = path.read_text(encoding="utf-8"), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if tokenize.tok_name[token.type] not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if node:
            code -= set(range(node.lineno, node.end_lineno + 1))
    return {"files": 1, "lines": len(text.splitlines()), "code": len(code)}


def folders(root: Path) -> Counts:
    """Return what each package and each of its folders holds."""
    rows = dict[str, Counter[str]]()
    for name in PACKAGES:
        home = package(root, name)
        for path in sorted(home.rglob("*.py")):
            counts, (first, *below) = measured(path), path.relative_to(home).parts
            for key in (name, f"{name}/{first if below else '*.py'}", "product"):
                rows.setdefault(key, Counter()).update(counts)
    return dict(sorted(rows.items()))


def documents(root: Path) -> Counts:
    """Return the words of the Markdown pages of each folder at the top of a checkout."""
    rows = dict[str, Counter[str]]()
    for path in sorted(root.rglob("*.md")):
        first, *below = path.relative_to(root).parts
        if first != "build" and not first.startswith("."):
            words = len(path.read_text(encoding="utf-8").split())
            for key in (f"{first}/" if below else "*.md", "documents"):
                rows.setdefault(key, Counter()).update(files=1, words=words)
    return dict(sorted(rows.items()))


class Parties:
    """The modules of the package that has the queries: their trees, and what they import."""

    def __init__(self, root: Path) -> None:
        home = package(root, PARTIES)
        self.paths = dict[str, Path]()
        for path in home.rglob("*.py"):
            parts = (PARTIES, *path.relative_to(home).with_suffix("").parts)
            self.paths[".".join(parts[: -1 if parts[-1] == "__init__" else None])] = path
        self.trees = {m: ast.parse(p.read_text(encoding="utf-8")) for m, p in self.paths.items()}
        # Of each module, the names that it imports, and where from.
        self.names = {
            module: {
                alias.asname or alias.name: (str(node.module), alias.name)
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            for module, tree in self.trees.items()
        }

    def home(self, module: str, name: str) -> str:
        """Return the module that an imported name stands for, or is defined in."""
        if f"{module}.{name}" in self.paths:
            return f"{module}.{name}"
        again = self.names.get(module, {}).get(name)
        return self.home(*again) if again else module

    def imports(self, module: str) -> set[str]:
        """Return the modules of `queries/` that a module imports."""
        found = {self.home(*origin) for origin in self.names[module].values()}
        return {name for name in found & set(self.paths) if name.startswith(f"{QUERIES}.")}

    def roots(self) -> dict[str, set[str]]:
        """Return the modules that define each kind: its class and its conversation."""
        nodes = [(module, node) for module, tree in self.trees.items() for node in ast.walk(tree)]
        classes = [(module, node) for module, node in nodes if isinstance(node, ast.ClassDef)]
        derived = {"Query"}
        while new := {n.name for _, n in classes if derived & {*map(base, n.bases)}} - derived:
            derived |= new
        kinds = {n.name: {m} for m, n in classes if n.name in derived and has_kind(n)}
        for module, node in nodes:
            if isinstance(node, ast.Call) and node.args and base(node.func) == "Conversation":
                kinds.get(base(node.args[0]), set()).add(module)
        return kinds

    def reached(self, roots: set[str], others: set[str]) -> set[str]:
        """Return the modules that a kind imports, without passing through those of others."""
        seen = set(roots)
        while new := set().union(*map(self.imports, seen)) - seen - others:
            seen |= new
        return seen


def base(node: ast.expr) -> str:
    """Return the last name of `a.Name[...]`, or ''."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return getattr(node, "id", getattr(node, "attr", ""))


def has_kind(node: ast.ClassDef) -> bool:
    """Return whether a class gives its `kind`, and not only the type of it."""
    given = [t for n in node.body if isinstance(n, ast.Assign) for t in n.targets]
    given += [n.target for n in node.body if isinstance(n, ast.AnnAssign) and n.value]
    return "kind" in {*map(base, given), *(keyword.arg for keyword in node.keywords)}


def kinds(root: Path) -> Counts:
    """Return the lines of each kind of query, and of what they share."""
    parties = Parties(root)
    roots = parties.roots()
    every = set().union(*roots.values())
    reached = {kind: parties.reached(own, every - own) for kind, own in sorted(roots.items())}
    times = Counter(module for modules in reached.values() for module in modules)
    own = {kind: {m for m in found if times[m] == 1} for kind, found in reached.items()}
    inside = {module for module in parties.paths if f"{module}.".startswith(f"{QUERIES}.")}
    own["shared"] = inside.difference(*own.values())
    rows = {kind: Counter[str]() for kind in own}
    for kind, modules in own.items():
        for module in modules:
            rows[kind].update(measured(parties.paths[module]))
    return rows


def house(source: Path) -> dict[str, Counts]:
    """Return the figures of a checkout, or those that a file keeps."""
    if source.is_file():
        return dict(json.loads(source.read_text(encoding="utf-8")))
    return {"folders": folders(source), "documents": documents(source), "kinds": kinds(source)}


def show(now: dict[str, Counts], before: dict[str, Counts] | None) -> None:
    """Print the figures, each with the earlier one and the difference if there is one."""
    for table, rows in now.items():
        columns = next(iter(rows.values()))
        print(table.ljust(36), *(name.rjust(26 if before else 8) for name in columns))
        earlier = before[table] if before else {}
        for row in sorted({*rows, *earlier}, key=lambda row: (row == "shared", row)):
            print(row.ljust(36), end="")
            for column in columns:
                new, old = (part.get(row, {}).get(column, 0) for part in (rows, earlier))
                print(f" {old:8,} {new:8,} {new - old:+8,}" if before else f" {new:8,}", end="")
            print()
        print()


def main() -> None:
    """Print the figures of a checkout."""
    parser = argparse.ArgumentParser(description="Count the lines of a checkout.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--against", type=Path, help="a checkout, or figures that --json wrote")
    options = parser.parse_args()
    now = house(options.folder)
    show(now, house(options.against) if options.against else None)
    if options.json:
        options.json.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
