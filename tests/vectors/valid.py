"""What constructors take, where they refuse values that the declared types alone would allow.

`tests.vectors.messages.example` takes other fields by their types.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.calibration.agreed import Calibration, ClassifierSpec
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.local_reports.plan import ReportPlan
from vertibayes_protocols.odds import OddsShape
from vertibayes_protocols.queries import (
    Align,
    Choose,
    Consensus,
    Meet,
    Scores,
    ScoreTable,
    Sums,
    Tables,
    Updates,
)
from vertibayes_protocols.queries.columns.split import Split
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.site.hidden_rows import CarriedColumns
from vertibayes_protocols.site.statistics import Numeric
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Variable


def _places(*places: int) -> NDArray[np.uint32]:
    return np.array(places, np.uint32)


NAMED = {"variables": ("x", "y", "ü")}
X, Y, AGE = Variable("x", ("no", "yes"), missing=True), Variable("ü", ("a", "b")), "age"
COLUMNS = {"x": X, "ü": Y}
HELD = {"x": ("a",), "ü": ("a", "b")}
PARTIES = {"keys": (b"\0" * 32, b"\1" * 32, b"\2" * 32), "session": bytes(range(16))}

VALID: dict[type, dict[str, Any]] = {
    OddsShape: {"target": "y", "fraction_bits": 30},
    ScoreTable: {"thresholds": np.array([-4, 0, 9])},
    Tables: {"prefixes": (_places(0), _places(1, 0)), "lasts": (_places(), _places(2)), **NAMED},
    Choose: {
        "members": _places(0, 1, 2, 1),
        "families": _places(2, 1),
        "withins": _places(1, 0),
        "signs": np.array([1, -1]),
        "candidates": _places(1, 0, 1),
        "sets": _places(1, 2),
        "constants": np.array([0, -5, 7]),
        **NAMED,
    },
    Meet: {"parties": ("a", "b", "dealer"), "dealer": "dealer", **PARTIES},
    Alignment: {
        "level": 2,
        "rules": ("digits", "text"),
        "sizes": (("a", 90), ("b", 100)),
        "everyone": ("a",),
        "apart": (("a", "b"),),
        "fewest": 11,
    },
    CarriedColumns: {
        "variables": COLUMNS,
        "owners": {"x": "a", "ü": "b"},
        "most_indicators": 8,
        "size": 100,
    },
    Align: PARTIES,
    Study: {
        "variables": COLUMNS,
        "holders": HELD,
        "records": 1000,
        "dealer": "dealer",
        "block_rows": 32,
        "most_indicators": 8,
    },
    Split: {
        "target": Y,
        "features": {"x": X, "z": Variable("z", ("0", "1", "2"))},
        "holders": {"a": ("x",), "b": ("z",)},
        "class_counts": (40, 60),
    },
    Scores: {"via": "product", "totals": {"a": (3, 4)}, "first": 5, "last": 9},
    ReportPlan: {"reports": "one", "oracle": "the", "approach": 2, "bins": None},
    Terms: {"dishonest": 0.125, "dropouts": 0.25},
    Privacy: {"accounting": "whole", "protects": "record", "noise": "gaussian", "gamma": 0.5},
    Sums: {
        "via": "masked",
        "blocks": (("a", "b", "c"), ("d",)),
        "estimates": _places(0, 2, 4, 1),
        "absent": ("c",),
    },
    Updates: {"parties": ("a",), "members": ("a", "b"), "iterations": 7},
    ClassifierSpec: {
        "target": "x",
        "variables": COLUMNS,
        "numerics": {AGE: Numeric(AGE, 0.5, 100.0)},
        "families": (),
    },
    Graph: {"neighbours": {"a": ("b", "c"), "b": ("a",), "c": ("a",)}},
    Calibration: {"shown": True, "iterations": 9},
    Consensus: {"absent": ("c",), "back": ("b",), "first": 2, "rounds": 3, "most_gone": 0},
}
