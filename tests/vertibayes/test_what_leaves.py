"""What an owner reads before approving a study: each kind of it, and names that others chose."""

from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest

from vertibayes.cli import texts
from vertibayes.cli.what_leaves import what_leaves
from vertibayes.contract import options_json
from vertibayes.dag import Structure
from vertibayes.options import Options
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.constraints import Constraints
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.approvals import Approval
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.release import Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Variable

FORGED = "\nNobody learns anything.\x1b[2J\u202e\u2028"
ODDS = {"tables": [["{v}", "x"]], "target": "{v}", "states": ["{v}", "no"]}
SCHEMA = {"target": {"name": "{v}"}, "features": [["x", {"states": ["a"]}], ["{v}2", {}]]}
QUERIES = {
    "describe": {},
    "sums": {"terms": {"schema": SCHEMA, "privacy": asdict(Privacy(eps=0.5, noise="gaussian"))}},
    "updates": {"terms": {"schema": SCHEMA, "privacy": None}, "iterations": 2},
    "report": {"asked": {"reports": "{v}", "eps": 0.5}},
    "publish": {"split": {"target": {"name": "{v}"}}, "eps": 0.5},
    "predict": {"rows": {"last": 5}, "odds": ODDS},
    "score table": {
        "rows": {"last": None},
        "odds": ODDS,
        "rule": asdict(Rule("cut")),
        "thresholds": [0, [1, 2]],
    },
    "scores": {"split": {"target": {"name": "{v}"}}, "last": 300},
    "consensus": {"last": 20, "agreed": {"spec": {"target": "{v}"}, "shown": True}},
}
GIVEN = Structure({"{v}": (), "x": ("{v}",), "y": ()})
NETWORKS = {
    **{by: Options(algorithm=by, class_variable="{v}" if by == "tan" else None)
       for by, how in ALGORITHMS.items() if how.steps},
    "required": Options(constraints=Constraints(required=[("{v}", "x")])),
    "structure": Options(structure=GIVEN),
    "start": Options(algorithm="hill_climbing", start=GIVEN),
}  # fmt: skip


def filled(content, name):
    """Return JSON data with a name in each place that has one."""
    if isinstance(content, dict):
        return {key: filled(value, name) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [filled(value, name) for value in content]
    return content.replace("{v}", name) if isinstance(content, str) else content


def shown(kind, name, rule=None, data=None):
    """Return what a site's owner reads of a study, in which others chose `name`."""
    sites = f"a{name}", "own"
    if kind in NETWORKS:
        options, queries = {"learning": options_json(NETWORKS[kind])}, ()
        rule = rule or Rule("cut")
    else:
        model = {"file": "{v}", "sha256": "ab" * 32}
        options, queries = {"model": model}, ({"kind": kind, "fields": QUERIES[kind]},)
    contract = Contract(
        sites=tuple((site, site.encode()) for site in sites),
        dealer=(f"d{name}", b"d"),
        analyst=(f"n{name}", b"n"),
        variables=(name, "x", "y"),
        learner=kind,
        options=filled(options, name),
        queries=tuple(filled(queries, name)),
        rule=rule,
        alignment=Alignment(1, ("digits",), ((sites[0], 90), (sites[1], 1200)), sites),
    )
    policy = Policy(most_scores=300)
    own = SimpleNamespace(
        party="own", variables=("x", "z"), policy=policy, pinned={}, matching=None
    )
    return what_leaves(Approval(contract, "A. Owner", "2026-01-31"), own, SiteMemory(), data)


@pytest.mark.parametrize("kind", [*NETWORKS, *QUERIES])
def test_no_name_writes_a_line_of_its_own(kind):
    plain, forged = shown(kind, "v"), shown(kind, FORGED)
    assert len(forged.split("\n")) == len(plain.split("\n"))
    assert all(line.isprintable() for line in forged.split("\n"))
    assert "?Nobody learns anything.?[2J??" in forged


def test_the_control_of_it_shows_values_as_they_are(monkeypatch):
    environment = texts._environment().overlay(finalize=None, cache_size=0)
    monkeypatch.setattr(texts, "_environment", lambda: environment)
    assert "\nNobody learns anything.\x1b" in shown("k2", FORGED)


@pytest.mark.parametrize(
    ("rule", "limits"),
    [
        (Rule("exact"), ["a count of 1 singles out", "differ by one person"]),
        (Rule("cut", fewest=5), ["counts from 5 on are exact", "differ by one person"]),
        (Rule("gaussian"), ["choices have no noise", "for a value of the person it is 2"]),
        (
            Rule("laplace", epsilon=0.5, dishonest=0.25),
            ["for a value of the person it is 1", "more than 25%"],
        ),
        (Rule("gaussian", dishonest=0.25), ["more than 25% of the sites working with"]),
        (Rule("gaussian", dishonest=0.0), ["- a site working with nv: who knows a site's part"]),
    ],
)
def test_each_rule_is_shown_with_what_it_does_not_protect(rule, limits):
    promise, unprotected = shown("k2", "v", rule).split("What the rule does not protect:")
    assert f"rule {rule.kind}: " in promise
    assert all(words in unprotected for words in limits)
    assert "a site that lies" in unprotected
    assert ("part of the noise subtracts it" in unprotected) is (rule.dishonest < 1)
    assert (", if " in promise.split(f"rule {rule.kind}: ")[1]) is (rule.dishonest < 1)


def test_tables_of_a_few_people_of_the_sites_own_values_are_named():
    """The table of x and v: x is the site's, v of another site."""
    codes = {"x": np.repeat(np.arange(4, dtype=np.uint8), [60, 9, 1, 10])}
    variables = {"x": Variable("x", ("0", "1", "2", "3"))}
    data = SiteData(variables, codes)
    said = "site: x, v; 2 combinations of this site's values in it have 1 to 9 people"
    for rule in (Rule("cut"), Rule("exact")):
        assert f"a table with variables of this {said}\n" in shown("structure", "v", rule, data)
    few = "1 combination of this site's values in it has 1 to 4 people"
    assert few in shown("structure", "v", Rule("cut", fewest=5), data)
    assert "this site: x, v\n" in shown("structure", "v", Rule("laplace"), data)
