"""The settings and figures of tables II to XII of Pérez et al. (2025), for `crc_tables.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crc_runs import LETTERS, RULES, Setting

SIZES = (20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240)
EDGES = {"tree": 0, "+10": 10, "+20": 20, "+40": 40, "+80": 80}
COUNTS = (20, 40, 80, 160, 320)

# The paper's figures. II: gaps of RC to RC of 10,240 records, and the error of that.
TABLE_2 = {
    "skin": (0.01, 0.01, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.07),
    "bank": (0.05, 0.03, 0.01, 0.01, 0.00, 0.00, 0.00, 0.00, 0.00, 0.11),
    "adult": (0.09, 0.08, 0.05, 0.04, 0.02, 0.01, 0.00, 0.00, 0.00, 0.16),
    "letter": (0.77, 0.77, 0.73, 0.44, 0.33, 0.22, 0.13, 0.06, 0.02, 0.19),
}
# III: gap of ML, gap and sd of CRC, error of RC; of training, then of test.
TABLE_3 = {
    "skin": (0.01, 0.00, 0.00, 0.07, 0.01, 0.00, 0.00, 0.07),
    "bank": (0.03, 0.00, 0.00, 0.10, 0.03, 0.00, 0.00, 0.11),
    "adult": (0.06, 0.01, 0.00, 0.15, 0.05, 0.01, 0.00, 0.16),
    "letter": (0.50, 0.75, 0.00, 0.06, 0.38, 0.58, 0.00, 0.26),
}
TABLE_2[LETTERS], TABLE_3[LETTERS] = TABLE_2["letter"], TABLE_3["letter"]
# XI: gap and round of 1, 2 and 3 local iterations.
TABLE_11 = {
    "skin": ((0.01, 32), (0.01, 16), (0.01, 11)),
    "bank": ((0.01, 11), (0.01, 6), (0.01, 5)),
    "adult": ((0.01, 56), (0.01, 43), (0.01, 45)),
    "letter": ((0.59, 64), (0.59, 64), (0.58, 64)),
}


@dataclass(frozen=True)
class Gaps:
    """A table of test gaps: its settings, and the paper's figures of them."""

    title: str
    settings: Mapping[str, Setting]
    paper: Mapping[str, Sequence[float]]
    rules: Sequence[str] | None = None


GAPS = {
    "IV": Gaps(
        "other networks",
        {"tree": Setting(), "chain": Setting(network="chain")}
        | {name: Setting(more=more) for name, more in EDGES.items() if more},
        {"skin": [0.00] * 6, "bank": [0.00] * 6, "adult": (0.01, 0.01, 0.01, 0.00, 0.00, 0.00),
         "letter": (0.46, 0.37, 0.46, 0.49, 0.51, 0.52)},
    ),
    "V": Gaps(
        "drift in p(x)",
        {name: Setting(more=more, drift="x") for name, more in EDGES.items()},
        {"skin": [0.00] * 5, "bank": (0.01, 0.00, 0.00, 0.00, 0.00),
         "adult": (0.03, 0.02, 0.01, 0.01, 0.00), "letter": (0.47, 0.56, 0.61, 0.63, 0.64)},
    ),
    "VI": Gaps(
        "drift in p(y)",
        {name: Setting(more=more, drift="y") for name, more in EDGES.items()},
        {"skin": (0.01, 0.01, 0.00, 0.00, 0.00), "bank": [0.01] * 5, "adult": [0.08] * 5,
         "letter": [0.70] * 5},
    ),
    "VII": Gaps(
        "drift in p(x, y)",
        {name: Setting(more=more, drift="xy") for name, more in EDGES.items()},
        {"skin": (0.03, 0.02, 0.01, 0.01, 0.00), "bank": [0.01] * 5, "adult": [0.08] * 5,
         "letter": [0.70] * 5},
    ),
    "VIII": Gaps(
        "records of a node",
        {str(each): Setting(each=each) for each in COUNTS},
        {"skin": [0.00] * 5, "bank": [0.00] * 5, "adult": (0.02, 0.01, 0.01, 0.00, 0.00),
         "letter": (0.61, 0.68, 0.09, 0.07, 0.04)},
    ),
    "IX": Gaps(
        "nodes of 50 records (the paper: the best round of each repetition; ours: round 64)",
        {str(nodes): Setting(nodes=nodes) for nodes in COUNTS},
        {"skin": [0.00] * 5, "bank": [0.00] * 5, "adult": [0.01] * 5,
         "letter": (0.39, 0.50, 0.28, 0.28, 0.24)},
    ),
    "X": Gaps(
        "nodes of 12,800 records together",
        {str(nodes): Setting(nodes=nodes, each=12800 // nodes) for nodes in COUNTS},
        {"skin": [0.00] * 5, "bank": [0.00] * 5, "adult": (0.00, 0.00, 0.00, 0.01, 0.01),
         "letter": (0.02, 0.04, 0.07, 0.11, 0.74)},
    ),
    "XII": Gaps(
        "rounds that a tree lasts (a relay needs a network that does not change)",
        {"all": Setting()} | {str(every): Setting(every=every) for every in (8, 4, 2, 1)},
        {"skin": [0.00] * 5, "bank": [0.00] * 5, "adult": (0.01, 0.01, 0.00, 0.00, 0.00),
         "letter": (0.59, 0.57, 0.57, 0.57, 0.57)},
        ("mean", "without the node", "mean, data", "metropolis, data"),
    ),
    "options": Gaps(
        "which option closes the gap",
        {"tree": Setting(), "chain": Setting(network="chain")}
        | {f"drift in {drift}": Setting(drift=drift) for drift in ("x", "y", "xy")},
        {"skin": (0.00, 0.00, 0.00, 0.01, 0.03), "bank": (0.00, 0.00, 0.01, 0.01, 0.01),
         "adult": (0.01, 0.01, 0.03, 0.08, 0.08), "letter": (0.46, 0.37, 0.47, 0.70, 0.70)},
        [name for name, rule in RULES.items() if rule.repairs],
    ),
    "repairs": Gaps(
        "counts and variances below zero as they are; the gap of the first class",
        {"tree": Setting()}
        | {f"drift in {drift}{f' +{more}' if more else ''}": Setting(drift=drift, more=more)
           for drift in ("x", "y", "xy") for more in (0, 80)},
        {"skin": (0.00, 0.00, 0.00, 0.01, 0.00, 0.03, 0.00),
         "bank": (0.00, 0.01, 0.00, 0.01, 0.01, 0.01, 0.01),
         "adult": (0.01, 0.03, 0.00, 0.08, 0.08, 0.08, 0.08),
         "letter": (0.46, 0.47, 0.64, 0.70, 0.70, 0.70, 0.70)},
        ("mean", "without the node", "mean, no repairs", "without the node, no repairs"),
    ),
    "letter": Gaps(
        "Letter, its numbers read as categories",
        {"tree": Setting(), "drift in y": Setting(drift="y")}
        | {f"{each} records": Setting(each=each) for each in COUNTS},
        {LETTERS: (0.46, 0.70, 0.61, 0.68, 0.09, 0.07, 0.04)},
        ("mean", "without the node", "without the node, no repairs"),
    ),
}  # fmt: skip
