"""What the parties of a calibration agree on beforehand: classifier, network and parameters.

The start of a calibration follows from this and from a node's own records. Nothing here is
statistics or code, so that an analyst cannot have nodes compute what singles out a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.calibration.checks import check_choices
from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.classifier import (
    Examples,
    FactoredClassifier,
    naive_bayes,
    network_classifier,
    scales_within,
)
from vertibayes_protocols.calibration.graph import Graph
from vertibayes_protocols.calibration.nodes import AveragingNode, Node, RelayNode, relay_rate
from vertibayes_protocols.schema import Declaration, Schema, check_columns
from vertibayes_protocols.site.statistics import Counts, Numeric
from vertibayes_protocols.variables import Family, Variable

MOST_NODES = 4096
MOST_ROUNDS = 10_000
MOST_ITERATIONS = 100
MOST_RECORDS = 1 << 29  # of one node
MOST_SIZE = 1e9  # m0


class ClassifierSpec(NamedTuple):
    """A classifier as it is declared."""

    target: str  # the class
    variables: Mapping[str, Variable]  # the class and the categorical features
    numerics: Mapping[str, Numeric]  # the features that are numbers, with their bounds
    families: tuple[Family, ...] = ()  # of a Bayesian network

    @classmethod
    def of(cls, schema: Schema) -> ClassifierSpec:
        """Return naive Bayes of a schema."""
        return cls(schema.target.name, schema.variables, schema.numerics)

    @property
    def schema(self) -> Schema:
        """The class and the features of naive Bayes."""
        features = {name: v for name, v in self.variables.items() if name != self.target}
        return Schema(self.variables[self.target], features | dict(self.numerics))

    @property
    def declaration(self) -> Declaration:
        """Which columns a site must have."""
        return Declaration(self.variables, self.numerics, (Counts(self.tables),))

    @property
    def tables(self) -> tuple[Family, ...]:
        """The tables of counts in the statistics; numbers have sums instead."""
        if self.families:
            return self.families
        parents = (self.target,)
        return tuple(Family(n, parents if n != self.target else ()) for n in self.variables)

    @property
    def cells(self) -> int:
        """An upper bound of how many numbers the statistics have."""
        sizes = {name: len(variable.states) for name, variable in self.variables.items()}
        of_numbers = 3 * len(self.numerics) * sizes[self.target]
        return of_numbers + sum(prod(sizes[n] for n in f.members) for f in self.tables)

    def check(self) -> None:
        """Refuse a declaration that is not one of a classifier."""
        if self.target not in self.variables or len(self.variables[self.target].states) < 2:
            raise ValueError(f"the class {self.target!r} must be declared with two states or more")
        check_columns(self.variables, self.numerics)
        for numeric in self.numerics.values():
            numeric.check()
        if len(self.variables) + len(self.numerics) < 2:
            raise ValueError("the classifier has no features")
        if any(not variable.states for variable in self.variables.values()):
            raise ValueError("a variable is declared without states")
        if self.families:
            self._check_families()

    def _check_families(self) -> None:
        if self.numerics:
            name = min(self.numerics)
            raise ValueError(
                f"a network must have variables with states only: got bounds of {name!r}"
            )
        if sorted(family.child for family in self.families) != sorted(self.variables):
            raise ValueError("each variable must be the child of one family")
        for family in self.families:
            if unknown := [name for name in family.members if name not in self.variables]:
                raise ValueError(f"{min(unknown)!r} is in a family and not declared")
            if len(set(family.members)) < len(family.members):
                raise ValueError(f"the family of {family.child!r} has a variable twice")

    @property
    def classifier(self) -> FactoredClassifier:
        """The classifier, measured within the declared bounds."""
        if self.families:
            return network_classifier(self.target, self.variables, self.families)
        return naive_bayes(self.schema, scales_within(self.numerics))


@dataclass(frozen=True)
class Calibration:
    """A calibration of a classifier over a communication network."""

    spec: ClassifierSpec  # the classifier
    network: Graph  # all nodes, and who speaks with whom
    most_records: int  # how many records a node has at most
    mixing: Mixing = "mean"
    start: Start = "uniform"
    shown: bool = False  # whether a node sends its statistics to its neighbours
    rate: float = 0.05  # the learning rate of RC
    size: float = 1.0  # m0, the equivalent sample size, which averages use
    iterations: int = 1  # local updates per round

    def __post_init__(self) -> None:
        self.spec.check()
        check_choices(self.mixing, self.start)
        if not 0 < self.rate <= 1:  # a nan is not
            raise ValueError(f"the learning rate must be above 0 and at most 1, got {self.rate}")
        if not 0 < self.size <= MOST_SIZE:
            raise ValueError(f"m0 must be above 0 and at most {MOST_SIZE:g}, got {self.size}")
        for name, number, most in (
            ("iterations", self.iterations, MOST_ITERATIONS),
            ("most_records", self.most_records, MOST_RECORDS),
        ):
            if not 1 <= number <= most:
                raise ValueError(f"{name} must be from 1 to {most}, got {number}")
        self._check_network()

    def _check_network(self) -> None:
        nodes = self.network.nodes
        if not 2 <= len(nodes) <= MOST_NODES:
            raise ValueError(f"there must be from 2 to {MOST_NODES} nodes, got {len(nodes)}")
        self.network.check_connected()
        if self.shown:
            return
        if self.mixing == "relay":
            raise ValueError("a relay shows statistics to neighbours: it must be agreed as shown")
        for node, peers in self.network.neighbours.items():
            if len(peers) < 2:
                raise ValueError(
                    f"the node {node} has one neighbour, {peers[0]}: the sum over this "
                    f"neighbourhood would show the statistics of {peers[0]} to {node}. Add an "
                    "edge, or agree that neighbours see statistics (shown)"
                )

    @cached_property
    def classifier(self) -> FactoredClassifier:
        """The classifier."""
        return self.spec.classifier

    @property
    def length(self) -> int:
        """How many numbers a message between neighbours has."""
        numbers = len(self.classifier.classes) * self.classifier.width
        return 2 * numbers + 1 if self.mixing == "relay" else numbers

    @property
    def links(self) -> Graph:
        """The edges over which statistics travel."""
        return self.network.tree if self.mixing == "relay" else self.network

    def node(self, party: Party, examples: Examples) -> Node:
        """Return a node at its start."""
        start, iterations = self.start, self.iterations
        if self.mixing == "relay":
            rate = relay_rate(self.rate, iterations, self.network)
            return RelayNode(
                party, self.classifier, examples, rate, start=start, iterations=iterations
            )
        return AveragingNode(
            party,
            self.classifier,
            examples,
            self.size,
            self.rate,
            start=start,
            mixing=self.mixing,
            iterations=iterations,
        )
