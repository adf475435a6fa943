"""The data of the golden record: sites with columns, with lists of people, and with records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.protocols.listed import Listed, site_of
from tests.randomness import SeededRandomness
from vertibayes_mpc.commitments import BLOCK_ROWS
from vertibayes_protocols.alignment import AlignmentLimits
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.statistics import LocalData
from vertibayes_protocols.study import CHOICE_INDICATORS, Study
from vertibayes_protocols.variables import Variable

STUDY = b"one study"
STATES = "no", "yes", "maybe"
RECORDS = 40
SITES = "a", "b", "c"


def _codes(name, states, records):
    """Return codes that look irregular: as many as there are records."""
    drawn = SeededRandomness(name.encode()).bytes(records)
    return (np.frombuffer(drawn, np.uint8) % states).astype(np.uint8)


# ---- sites with columns of the same records ------------------------------------------------------

CLASSES = ("low", "high")  # of t, which one site holds; all sites hold k
_HELD = {"a": "xyk", "b": "zk", "c": "wtk"}
_STATES = dict.fromkeys("xyzwk", STATES) | {"t": CLASSES}


def columns(changed=()):
    """Return the sites' columns; the codes of the first records of `changed` are others."""
    found = {}
    for site, names in _HELD.items():
        codes = {name: _codes(name, len(_STATES[name]), RECORDS) for name in names}
        for name in set(changed) & set(names):
            codes[name][:3] = (codes[name][:3] + 1) % 3
        found[site] = SiteData({name: Variable(name, _STATES[name]) for name in names}, codes)
    return found


COLUMNS = columns()
CLASS_COUNTS = tuple(np.bincount(COLUMNS["a"].codes["k"], minlength=3).tolist())
_FEATURES = {name: Variable(name, STATES) for name in "xzw"}
SPLIT = Split.of(
    Schema(Variable("k", STATES), _FEATURES), {"a": ("x",), "b": ("z",), "c": ("w",)}, CLASS_COUNTS
)


def study(name=STUDY, held=None, most_indicators=CHOICE_INDICATORS, **changes):
    """Return a study of all columns but the class that all sites hold."""
    held = held or COLUMNS
    variables = {n: v for data in held.values() for n, v in data.variables.items() if n != "k"}
    holders = {n: tuple(s for s in held if n in held[s].variables) for n in variables}
    records = changes.pop("records", held["a"].records)
    options = {"dealer": DEALER, "block_rows": BLOCK_ROWS, "memory": 1 << 24, **changes}
    return Study(name, variables, holders, records, most_indicators=most_indicators, **options)


# ---- sites with lists of people ------------------------------------------------------------------

LISTED = Listed({"a": "xy", "b": "z"}, {"a": range(1, 41), "b": range(11, 51)})
_SAME = {
    site: site_of(range(1, 41), {n: _codes(n, 3, 40) for n in names})
    for site, names in LISTED.holders.items()
}
LISTS = {"lists": LISTED.data, "same lists": _SAME}


def _fewer_or_changed(*, fewer=False, changed=0):
    """Return the lists without five people of one, or with changed values of some people."""
    found = {}
    for site, held in LISTED.data.items():
        codes = {name: column.copy() for name, column in held.codes.items()}
        for column in codes.values():
            column[15 : 15 + changed] = (column[15 : 15 + changed] + 1) % 3
        keep = slice(3, -2) if fewer and site == "b" else slice(None)  # three are in both lists
        found[site] = replace(held, codes=codes).people(np.arange(held.records)[keep])
    return found


PEOPLE = {
    "all": LISTED.data,
    "fewer": _fewer_or_changed(fewer=True),
    "changed": _fewer_or_changed(changed=3),
}
LIMITS = AlignmentLimits(most_alignments=3)

# ---- sites with records of the same columns ------------------------------------------------------

SCHEMA = Schema(
    Variable("y", ("s0", "s1", "s2")),
    {"a": Variable("a", ("s0", "s1", "s2", "s3")), "b": Variable("b", ("s0", "s1"))},
)
_RECORDS = {"p": 12, "q": 13, "r": 14, "s": 15}
GRAPH = Graph.of(_RECORDS, [("p", "q"), ("q", "r"), ("r", "s"), ("s", "p")])


def records():
    """Return the sites' records, as they hold them, and as they are summed: nothing is missing."""
    batches = {
        site: LocalData(
            SCHEMA.variables,
            {
                name: _codes(site + name, len(v.states), count).astype(np.int64)
                for name, v in SCHEMA.variables.items()
            },
        )
        for site, count in _RECORDS.items()
    }
    variables = {n: Variable(n, v.states, True) for n, v in SCHEMA.variables.items()}
    held = {
        site: SiteData(variables, {n: c.astype(np.uint16) for n, c in data.codes.items()})
        for site, data in batches.items()
    }
    return held, batches
