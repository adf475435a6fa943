"""The Python, TOML and JSON in the documents: it compiles, its types fit, and what can run runs."""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import symtable
import textwrap
import tomllib

import numpy as np
import pandas as pd
import pytest

from tests.documents import NEW_QUERY, ROOT, fenced, pages
from vertibayes import PlainCounter, SiteData, fit_cpts, k2

BLOCKS = [block for page in pages() for block in fenced(page)]
PYTHON = [block for block in BLOCKS if block.language == "python" and NEW_QUERY not in block.text]


def of(page):
    """Return the Python blocks of a page of docs."""
    return [block for block in PYTHON if block.page == ROOT / "docs" / page]


def block_with(page, words):
    """Return the first Python block of a page of docs that has some words."""
    return next(block for block in of(page) if words in block.text)


def missing_names(text):
    """Return the names that a block uses and does not define: what its page says before."""
    table = symtable.symtable(text, "block", "exec")
    inner = [symbol for child in table.get_children() for symbol in child.get_symbols()]
    symbols = [*table.get_symbols(), *(symbol for symbol in inner if symbol.is_global())]
    defined = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    used = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    return sorted(used - defined - set(vars(builtins)))


def imported(text):
    """Yield the modules and names that a block imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_a_block_of_python_compiles_and_its_imports_exist(block):
    compile(block.text, str(block), "exec")
    for module, name in imported(block.text):
        loaded = importlib.import_module(module)
        assert not name or hasattr(loaded, name), f"{module} has no {name}"


def test_there_are_blocks_and_those_of_data_parse():
    languages = [block.language for block in BLOCKS]
    assert languages.count("python") >= 14 and languages.count("toml") >= 6
    for block in BLOCKS:
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "json":
            json.loads(block.text)


def as_function(number, block):
    """Return a block as a function of what its page says before."""
    given = "".join(f"{name}: Any, " for name in missing_names(block.text))
    body = textwrap.indent(block.text, "    ")
    return f"# {block}\ndef block_{number}({given}) -> None:\n{body}\n"


@pytest.mark.laws
def test_the_types_of_the_blocks_fit(tmp_path):
    """One run for all; the cache is that of `make lint`, which has read the project before."""
    api = pytest.importorskip("mypy.api")
    models = block_with("models.md", "sites=3")
    wrong = models._replace(text=models.text.replace("sites=3", "number_of_sites=3"))
    functions = [as_function(number, block) for number, block in enumerate([*PYTHON, wrong])]
    file = tmp_path / "blocks.py"
    file.write_text("\n\n".join(["from typing import Any", *functions]))
    options = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache"]
    out, problems, _ = api.run([*map(str, options), str(file)])
    assert not problems
    errors = [line for line in out.splitlines() if "blocks.py" in line and "error:" in line]
    # A promise is None without noise, a ledger without sites; the pages know what they have.
    absent = ('"None" of "Promise | None"', '"None" of "Ledger | None"')
    (error,) = [line for line in errors if not any(what in line for what in absent)]
    assert "number_of_sites" in error


# ---- blocks that run -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    """Return invented people: what the pages' names of columns and states need."""
    chance = np.random.default_rng(4)
    smoke, sex = chance.random(400) < 0.4, chance.random(400) < 0.5
    lung = chance.random(400) < np.where(smoke, 0.6, 0.2)
    outcome = chance.random(400) < np.where(lung, 0.7, 0.3)
    columns = {"smoke": smoke, "sex": sex, "lung": lung, "outcome": outcome}
    yes = {name: np.where(values, "yes", "no") for name, values in columns.items()}
    age = chance.choice(["young", "old"], 400)
    return pd.DataFrame(yes | {"age": age, "smoker": yes["smoke"], "cancer": yes["lung"]})


def run(block, **given):
    names = dict(given)
    exec(compile(block.text, str(block), "exec"), names)
    return names


def test_the_block_on_models_runs(frame):
    names = run(block_with("models.md", "federate("), frame=frame)
    assert names["network"].structure.edges


def test_the_block_on_constraints_runs(frame):
    names = run(block_with("structures.md", "Constraints("), frame=frame)
    assert ("smoker", "cancer") in names["structure"].edges
    assert ("cancer", "age") not in names["structure"].edges


def test_the_block_on_effects_runs(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    names = ["sex", "smoke", "lung", "outcome"]
    counter = PlainCounter(SiteData.from_frame(frame[names]))
    fit_cpts(counter, k2(counter, ordering=names)).save("results/model.json")
    effect = run(block_with("effects.md", "effects_in"), counter=counter)["effect"]
    assert effect.difference("yes", "yes", "no") > 0.2


@pytest.mark.parametrize("page", ["frequency_oracles", "local_naive_bayes"])
def test_a_block_that_needs_nothing_runs(page, capsys):
    pytest.importorskip("opendp")
    (block,) = of(f"protocols/{page}.md")
    assert not missing_names(block.text)
    run(block)
    assert capsys.readouterr().out.strip()


def test_names_that_a_block_does_not_define_are_found():
    assert missing_names("import a\nb = a.c(d)\nprint([e for e in b if f])") == ["d", "f"]
