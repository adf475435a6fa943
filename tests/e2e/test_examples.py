"""The examples, and the README's Python, as they stand."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_hospitals(capsys):
    network, counter = load("two_hospitals").learn()
    told = capsys.readouterr().out
    assert counter.records == 569 and len(network.variables) == 21
    assert network.variables["diagnosis"].states == ("benign", "malignant")
    held = counter.study.holders
    assert any(held[p] != held[c] for p, c in network.structure.edges), "edges between hospitals"
    assert "569 patients" in told
    network.to_pgmpy()


def test_an_own_learner():
    secure, pooled = load("own_learner").compare()
    assert secure == pooled and len(secure.edges) == 36


def test_the_python_of_the_readme(tmp_path, monkeypatch, capsys, alarm_data):
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names = list(alarm_data.variables)[:6]
    rows = [",".join(names)]
    states = [np.array(alarm_data.variables[n].states)[alarm_data.codes[n]] for n in names]
    rows += [",".join(row) for row in zip(*states, strict=True)]
    (tmp_path / "patients.csv").write_text("\n".join(rows))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "('" in capsys.readouterr().out
    assert len([line for line in code.splitlines() if line.strip()]) <= 11


def test_links_of_the_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
