"""A query of each kind, made from domain objects: the one place that knows how a query is written.

`QUERIES` has the queries of the golden record by name. Each is a function of the analyst's role,
which may hold a joined study, and of what is changed of its content.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tests.protocols.golden.data import (
    CLASS_COUNTS,
    CLASSES,
    GRAPH,
    LISTED,
    RECORDS,
    SCHEMA,
    SITES,
    SPLIT,
    STUDY,
    study,
)
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.calibration.agreed import Calibration, ClassifierSpec
from vertibayes_protocols.choices import Choices, Constant, Score
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.local_reports import ReportPlan
from vertibayes_protocols.odds import Odds, OddsTable
from vertibayes_protocols.queries import (
    Align,
    Begin,
    Choose,
    Commit,
    Consensus,
    Describe,
    Meet,
    Predict,
    Publish,
    Release,
    Report,
    Scores,
    ScoreTable,
    Sums,
    Updates,
)
from vertibayes_protocols.queries.columns.publish import RecordNoise
from vertibayes_protocols.queries.declared_run import declare
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.variables import Family, Rows

EXACT, CUT = Rule("exact"), Rule("cut", fewest=4)
LAPLACE = Rule("laplace", epsilon=0.5, dishonest=0.0)
GAUSSIAN = Rule("gaussian", epsilon=0.5, delta=1e-6, dishonest=0.0)
NOISY = Privacy(eps=0.5, noise="laplace")
NORMAL = replace(NOISY, noise="gaussian")
SHARED = Privacy(eps=0.5, gamma=0.5)  # each member adds a share of one copy of noise
SOME = Rows(1, 0, 20)


# ---- opening -------------------------------------------------------------------------------------


def begin(role, contract):
    return Begin.of(contract)


def alignment(level=1, sizes=(("a", 40), ("b", 40)), fewest=10):
    return Alignment(level, ("digits",), sizes, ("a", "b"), (), fewest)


def align(role, name=STUDY, **content):
    agreed, data = alignment(**content), LISTED.data
    carried = None
    if agreed.level == 2:
        variables = {n: v for held in data.values() for n, v in held.variables.items()}
        owners = {n: site for site, held in data.items() for n in held.variables}
        carried = CarriedColumns(variables, owners, 7, max(agreed.size.values()))
    return Align.of(role, agreed, DEALER, name, carried)


def meet(role, sites=SITES):
    return Meet.of(role, sites, DEALER)


def describe(role, sites=SITES):
    return Describe(sites)


def commit(role, name=STUDY, **content):
    return Commit.of(study(name, **content))


# ---- answers of a study --------------------------------------------------------------------------


def families(*names):
    """Return families: ``families("xz", "w")`` are x with the parent z, and w."""
    return tuple(Family(child, tuple(parents)) for child, *parents in names)


def tables(role, asked=("xz", "w"), rows=Rows(), missing=False):
    return ask_tables(role.joined, families(*asked), missing, rows)[0]


def choices(asked="xz", rows=Rows()):
    """Return one set: a family of two, and a constant."""
    (family,) = families(asked)
    return Choices((((Score(family),), (Constant(-50_000_000),)),), False, rows)


def choose(role, **content):
    return Choose.of(role.joined, choices(**content))


def release(role, asked=("xz", "w"), rule=EXACT, again=False):
    return Release.of(role.joined, FamilyTables(families(*asked), False, rule), again=again)


def odds(tables=("xz", "y"), target="t", states=CLASSES, bits=0):
    """Return tables with another number for each joint value."""
    made = [
        OddsTable(tuple(names), np.arange(3 ** len(names)).reshape([3] * len(names) + [1]))
        for names in tables
    ]
    return Odds(target, states, tuple(made), bits)


def predict(role, rows=Rows(), **content):
    return Predict.of(role.joined, odds(**content), rows)


def score_table(role, rule=EXACT, thresholds=(0, 5), rows=Rows(), **content):
    fields = {"thresholds": np.array(thresholds, np.int64), "rule": rule}
    return ScoreTable.of(role.joined, odds(**content), rows, **fields)


# ---- answers of sites that all know the class ----------------------------------------------------


def split(class_counts=None):
    return SPLIT if class_counts is None else replace(SPLIT, class_counts=class_counts)


def publish(role, eps=0.5, **content):
    return Publish.of(split(**content), RecordNoise(eps, "count"))


def scores(role, via="additive", last=RECORDS, **content):
    agreed = split(**content)
    generator = np.random.default_rng(3)
    shares = generator.dirichlet([1.0] * 3, 3).T  # of each state, by class
    tables = {name: np.floor(shares * np.array(CLASS_COUNTS)).astype(np.int64) for name in "xzw"}
    return Scores.of(role, agreed, DEALER, tables, (0, last), via)


# ---- answers of sites with different records -----------------------------------------------------


def terms(privacy=None, most_records=20, schema=SCHEMA, **shares):
    return Terms(schema, 10, most_records, privacy, **shares)


def sums(role, via="masked", absent=(), **content):
    agreed = terms(**content)
    return Sums.of(role, agreed, Members(agreed, GRAPH.nodes, via, role.randomness), absent)


def updates(role, iterations=1, privacy=NOISY, **content):
    return Updates.of(role, terms(privacy, **content), GRAPH.nodes, iterations)


def report(role, eps=0.5, most_records=20, schema=SCHEMA, **content):
    return Report(tuple(GRAPH.nodes), ReportPlan(schema=schema, eps=eps, **content), most_records)


def consensus(role, mixing="mean", shown=True, most_records=20, schema=SCHEMA, **content):
    spec = ClassifierSpec.of(schema)
    agreed = Calibration(spec, GRAPH, most_records, mixing, shown=shown, size=100.0)
    return Consensus.of(role, agreed, content.pop("rounds", 1), last=1, **content)


# ---- the queries of the record -------------------------------------------------------------------


class Asked(NamedTuple):
    """A query of the record.

    scene: which sites are asked; make: (analyst's role, **content) -> query; content: what is
    changed of the default; others: {name: content that a party may refuse for itself}.
    """

    scene: str
    make: object
    content: dict
    others: dict

    def query(self, role, **content):
        return self.make(role, **{**self.content, **content})


BEYOND = {"records beyond the study": {"rows": Rows(0, 0, RECORDS + 1)}}
THREE = {"a target of three states": {"target": "w"}}
TWICE = {"a family twice": {"asked": ("w", "w")}}
STRANGE = replace(
    SCHEMA, features={**SCHEMA.features, "b": replace(SCHEMA.features["b"], states=("s0",))}
)
UNKNOWN = replace(SCHEMA, features={"q": replace(SCHEMA.features["a"], name="q")})
DATA = {
    "more records than the terms": {"most_records": 13},
    "another state in the data": {"schema": STRANGE},
    "a column that nobody has": {"schema": UNKNOWN},
}
COUNTS = {"other counts of classes": {"class_counts": tuple(n + 1 for n in CLASS_COUNTS)}}

QUERIES = {
    "align": Asked("lists", align, {}, {
        "a size below the list": {"sizes": (("a", 39), ("b", 40))},
        "an implausible size": {"sizes": (("a", 40), ("b", 4000))},
    }),
    "align at level 2": Asked("lists", align, {"level": 2}, {}),
    "meet": Asked("columns", meet, {}, {}),
    "meet with lists": Asked("lists", meet, {"sites": ("a", "b")}, {}),
    "meet with the same lists": Asked("same lists", meet, {"sites": ("a", "b")}, {}),
    "describe": Asked("columns", describe, {}, {}),
    "commit": Asked("columns", commit, {}, {
        "other records": {"records": 39},
        "another dealer": {"dealer": "zoe"},
    }),
    "tables": Asked("study", tables, {}, BEYOND | {"a family twice": {"asked": ("xx",)}}),
    "tables of some records": Asked("study", tables, {"rows": Rows(2, 0, 30)}, {}),
    "choose": Asked("study", choose, {}, BEYOND),
    "release": Asked("study", release, {}, TWICE),
    "release, cut": Asked("study", release, {"rule": CUT}, {}),
    "release, laplace": Asked("study", release, {"rule": LAPLACE}, {}),
    "release, gaussian": Asked("study", release, {"rule": GAUSSIAN}, {}),
    "predict": Asked("study", predict, {}, BEYOND),
    "predict some records": Asked("study", predict, {"rows": SOME}, {}),
    "score table": Asked("study", score_table, {}, BEYOND | THREE),
    "score table, cut": Asked("study", score_table, {"rule": CUT}, {}),
    "score table, laplace": Asked("study", score_table, {"rule": LAPLACE}, {}),
    "publish": Asked("columns", publish, {}, COUNTS),
    "scores": Asked("columns", scores, {}, {"records beyond the study": {"last": RECORDS + 1}}),
    "scores, product": Asked("columns", scores, {"via": "product", "last": 2}, {}),
    "sums": Asked("records", sums, {}, DATA),
    "sums, additive": Asked("records", sums, {"via": "additive"}, {}),
    "sums, shares of noise": Asked("records", sums, {"privacy": SHARED}, DATA),
    "sums, laplace": Asked("records", sums, {"privacy": NOISY}, {}),
    "updates": Asked("records", updates, {}, DATA),
    "updates, gaussian": Asked("records", updates, {"privacy": NORMAL}, {}),
    "updates, gossip": Asked("records", updates, {"iterations": 2}, {}),
    "report": Asked("records", report, {}, DATA),
    "consensus": Asked("records", consensus, {}, DATA),
    "consensus, sums": Asked("records", consensus, {"shown": False}, {}),
    "consensus, relay": Asked("records", consensus, {"mixing": "relay"}, {}),
}  # fmt: skip


# ---- what a party must refuse of any query: fields that no contract fixes -----------------------


def changed(query, **fields):
    """Return a query with other free fields: its parties, number, study, the analyst's key."""
    return replace(query, **fields)


# ---- contracts -----------------------------------------------------------------------------------


def steps_of(study):
    """Choose once, then release two tables."""
    yield choices()
    yield FamilyTables(families("xz", "w"), False, EXACT)


def contract_of(world, *asked, steps=None, **changes):
    """Return a contract that declares queries, or has steps, and its approval."""
    keys = world.analyst().public_keys
    content = {
        "sites": tuple((site, keys[site]) for site in world.sites),
        "dealer": (DEALER, keys[DEALER]),
        "analyst": (ANALYST, world.analyst().keys.public),
        "variables": tuple(name for name in "xyzwtk" if steps is None or name != "k"),
        "learner": "a test",
        "options": {},
        "rule": EXACT if steps else None,
        "queries": tuple(map(declare, asked)),
        "memory": study().memory,
    }
    contract = Contract(**{**content, **changes})
    return contract, Approved(contract, "A. Owner", "2026-01-31", steps)


BEGIN = Asked("", begin, {}, {})
MORE = {"more records in the terms": {"most_records": 21}}
IN_A_RUN = {  # of each query in a run of its contract: content that is not the contract's
    "choose": {"another family": {"asked": "xw"}, "some records": {"rows": SOME}},
    "release": {"other families": {"asked": ("xz",)}, "another rule": {"rule": CUT}},
    "predict": {
        "other tables": {"tables": ("xz", "w")},
        "another target": {"target": "q"},
        "other bits": {"bits": 1},
        "some records": {"rows": SOME},
    },
    "score table": {
        "other tables": {"tables": ("xz", "w")},
        "another rule": {"rule": CUT},
        "other thresholds": {"thresholds": (0, 6)},
        "some records": {"rows": SOME},
    },
    "publish": {"another eps": {"eps": 0.4}, **COUNTS},
    "scores": {"fewer records": {"last": RECORDS - 1}, **COUNTS},
    "sums": {"noise": {"privacy": SHARED}, "another way": {"via": "additive"}, **MORE},
    "sums, shares of noise": {"no noise": {"privacy": None}, **MORE},
    "updates": {"two iterations": {"iterations": 2}, **MORE},
    "report": {"another eps": {"eps": 0.4}, "other reports": {"reports": "all"}, **MORE},
    "consensus": {
        "another mixing": {"mixing": "metropolis"},
        "sums": {"shown": False},
        "two rounds": {"rounds": 2},
        **MORE,
    },
}
