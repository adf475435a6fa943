"""The counts from which a run's CPTs were learned, as JSON data for ``counts.json``.

The counts are those that the run revealed: nothing is asked for them. Their rows are those of the
CPTs in ``model.json``: one for each combination of the parents' states, of which the last parent's
changes fastest. `kind` says what they are:

    exact               counts of all records
    complete            counts of the records that have a value of each variable of the table; the
                        CPTs are from counts that EM estimates of all records
    cut                 counts as they were released: those below `fewest` are 0
    rounded             counts as they were released: multiples of the rule's `fewest`
    laplace, gaussian   counts with noise, which may be negative
    noise               sums of a naive Bayes classifier with noise, which may be negative
    estimated           sums that the reports of persons, or gossip, estimate
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vertibayes.counting import Counter, Table
from vertibayes.counting.released import ReleasedCounter
from vertibayes.learning import Learned
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.network import Network
from vertibayes_protocols.site.statistics import apart

FORMAT = 1
RELEASED = "Beside each probability is the released count."
NOISE = "It has noise, and may be negative."
IN_WORDS = {  # beside the probabilities of a page
    "exact": "Beside each probability is the count of the records.",
    "complete": "Beside each probability is the count of the records that have a value of each "
    "variable of the table. The probabilities are from counts that EM estimates of all records, "
    "and so differ from shares of these counts.",
    "cut": RELEASED,
    "rounded": f"{RELEASED} It is rounded.",
    "laplace": f"{RELEASED} {NOISE}",
    "gaussian": f"{RELEASED} {NOISE}",
    "noise": f"Beside each probability is the sum of the parties' counts. {NOISE}",
    "estimated": "Beside each probability is an estimate of the count, from what the parties or "
    f"persons sent. {NOISE}",
}


def counts_json(learned: Learned, counter: Counter) -> Mapping[str, Any]:
    """Return the counts of the learned families."""
    network = learned.network
    families = network.structure.families
    if isinstance(counter, ReleasedCounter):
        rule = counter.request.rule
        by_family = dict(zip(counter.request.families, counter.released, strict=True))
        tables = [by_family[family] for family in families]
        kind: str = rule.kind
        fewest = rule.fewest if rule.kind == "cut" else None
    else:
        tables = counter.tables(families, missing=learned.missing == "state")
        kind, fewest = _kind(learned), None
    return {
        "format": FORMAT,
        "kind": kind,
        "fewest": fewest,
        "families": {
            family.child: {
                "parents": list(family.parents),
                "counts": _rows(network, family.members, table),
            }
            for family, table in zip(families, tables, strict=True)
        },
    }


def counts_of_classifier(model: NaiveBayes, kind: str) -> Mapping[str, Any]:
    """Return the sums from which a classifier without numbers was learned."""
    schema, target = model.schema, model.schema.target.name
    ((classes, *tables), *_) = apart(schema.statistics, schema.variables, model.sums_)
    families = {target: {"parents": list[str](), "counts": [classes.tolist()]}}
    for name, table in zip(schema.categorical, tables, strict=True):
        families[name] = {"parents": [target], "counts": table.T.tolist()}
    return {"format": FORMAT, "kind": kind, "fewest": None, "families": families}


def _kind(learned: Learned) -> str:
    return "complete" if learned.missing in ("em", "synthetic") else "exact"


def _rows(network: Network, members: tuple[str, ...], table: Table) -> list[list[int]]:
    """Return a table as the rows of a CPT, without the states that the model does not have."""
    lengths = [len(network.variables[name].states) for name in members]
    known = np.asarray(table)[tuple(map(slice, lengths))]
    rows: list[list[int]] = known.reshape(lengths[0], -1).T.tolist()
    return rows
