"""What experts know of a structure: its edges, and which variables come before others."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from vertibayes.dag import Structure
from vertibayes.edges import Edge


@dataclass(frozen=True)
class Constraints:
    """What every structure of a search must keep.

    Parameters
    ----------
    required, forbidden : tuple of (parent, child), default=()
        Edges that the structure must have, and must not have.
    tiers : tuple of tuple of str, default=()
        Groups of variables, earliest first: no edge goes from a variable to one of an earlier tier.
        A variable in no tier is free.
    roots, leaves : tuple of str, default=()
        Variables without parents, and without children.

    Raises
    ------
    ValueError
        If the constraints contradict each other; the message names the contradiction.

    Examples
    --------
    >>> constraints = Constraints(required=(("age", "stage"),), tiers=(("age",), ("stage", "cure")))
    >>> constraints.allows("age", "cure"), constraints.allows("cure", "age")
    (True, False)
    """

    required: tuple[Edge, ...] = ()
    forbidden: tuple[Edge, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    roots: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [name for tier in self.tiers for name in tier]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"a variable may be in one tier only: {', '.join(twice)}")
        for parent, child in self.required:
            if parent == child:
                raise ValueError(
                    f"the required edge {parent} -> {child} is from a variable to itself"
                )
            if (why := self._against(parent, child)) is not None:
                raise ValueError(f"the required edge {parent} -> {child} contradicts {why}")
        before: dict[str, set[str]] = {}
        for parent, child in self.required:
            before.setdefault(child, set()).add(parent)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            cycle = " -> ".join(error.args[1][::-1])
            raise ValueError(f"the required edges have a cycle: {cycle}") from None

    @property
    def names(self) -> list[str]:
        """All variables that the constraints name, sorted."""
        edges = (name for edge in (*self.required, *self.forbidden) for name in edge)
        tiers = (name for tier in self.tiers for name in tier)
        return sorted({*edges, *tiers, *self.roots, *self.leaves})

    @classmethod
    def from_json(cls, content: Any) -> Constraints:
        """Return the constraints of JSON data: an object with any of the parameters as lists.

        Raises
        ------
        ValueError
            If the data are not constraints, or these contradict each other.
        """
        if not isinstance(content, Mapping):
            raise ValueError(f"constraints must be a JSON object, got {content!r:.80}")
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(content) - set(known)):
            raise ValueError(
                f"unknown keys of the constraints: {', '.join(unknown)}; the keys are "
                f"{', '.join(known)}"
            )
        read = {name: _read(name, content[name]) for name in content}
        return cls(**read)

    def as_json(self) -> dict[str, Any]:
        """Return the constraints as JSON data, the inverse of `from_json`."""
        lists: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return lists

    def check(self, variables: Collection[str], max_parents: int) -> None:
        """Refuse constraints that do not fit the variables or the number of parents.

        Raises
        ------
        ValueError
            The message names the variable.
        """
        self.check_names(variables)
        for child in variables:
            parents = self.required_parents(child)
            if len(parents) > max_parents:
                raise ValueError(
                    f"{child} has {len(parents)} required parents, at most {max_parents} are "
                    "allowed; require fewer, or raise max_parents"
                )

    def check_names(self, variables: Collection[str]) -> None:
        """Refuse constraints that name other variables; errors as `check`."""
        if unknown := [name for name in self.names if name not in variables]:
            places = ", ".join(f"{name} in {self._place(name)}" for name in unknown)
            raise ValueError(
                f"the constraints name unknown variables: {places}; remove or correct the names"
            )

    def without(self, left_out: AbstractSet[str]) -> Constraints:
        """Return what the constraints say of the other variables.

        Raises
        ------
        ValueError
            If a required edge has a variable that is left out.
        """
        for edge in self.required:
            if absent := [name for name in edge if name in left_out]:
                raise ValueError(
                    f"the required edge {' -> '.join(edge)} needs {absent[0]}, which is left out"
                )
        kept = [tuple(name for name in tier if name not in left_out) for tier in self.tiers]
        return Constraints(
            required=self.required,
            forbidden=tuple(e for e in self.forbidden if left_out.isdisjoint(e)),
            tiers=tuple(tier for tier in kept if tier),
            roots=tuple(name for name in self.roots if name not in left_out),
            leaves=tuple(name for name in self.leaves if name not in left_out),
        )

    def allows(self, parent: str, child: str) -> bool:
        """Whether a structure may have an edge."""
        return self._against(parent, child) is None

    def required_parents(self, child: str) -> tuple[str, ...]:
        """Return the parents that a node must have, sorted by name."""
        return tuple(sorted({p for p, c in self.required if c == child}))

    def violations(self, structure: Structure) -> list[str]:
        """Return what a structure does not keep: a sentence for each edge."""
        edges = set(structure.edges)
        absent = [
            f"{p} -> {c} is required and absent" for p, c in self.required if (p, c) not in edges
        ]
        found = ((edge, self._against(*edge)) for edge in structure.edges)
        return absent + [f"{p} -> {c} contradicts {why}" for (p, c), why in found if why]

    @cached_property
    def _forbidden(self) -> frozenset[Edge]:
        return frozenset(self.forbidden)

    @cached_property
    def _tier_of(self) -> Mapping[str, int]:
        return {name: place for place, tier in enumerate(self.tiers) for name in tier}

    def _place(self, name: str) -> str:
        """Return the parameter that has a name first."""
        places: Mapping[str, tuple[tuple[str, ...], ...]] = {
            "required": self.required,
            "forbidden": self.forbidden,
            "tiers": self.tiers,
            "roots": (self.roots,),
            "leaves": (self.leaves,),
        }
        return next(place for place, groups in places.items() if any(name in g for g in groups))

    def _against(self, parent: str, child: str) -> str | None:
        """Return the constraint that forbids an edge; None if it is allowed."""
        if (parent, child) in self._forbidden:
            return f"the forbidden edge {parent} -> {child}"
        if child in self.roots:
            return f"the root {child}"
        if parent in self.leaves:
            return f"the leaf {parent}"
        places = self._tier_of
        if parent in places and child in places and places[parent] > places[child]:
            return f"the tiers, in which {child} is before {parent}"
        return None


def _read(name: str, value: Any) -> tuple[Any, ...]:
    """Return the value of a parameter: names, or groups of names."""
    if name in ("roots", "leaves"):
        if not _are_names(value):
            raise ValueError(_expected(name, '["age", "sex"]', value))
        return tuple(value)
    is_groups = isinstance(value, list) and all(map(_are_names, value))
    if name == "tiers" and not is_groups:
        raise ValueError(_expected(name, '[["age", "sex"], ["cancer"]]', value))
    if name != "tiers" and not (is_groups and all(len(edge) == 2 for edge in value)):
        raise ValueError(_expected(name, '[["parent", "child"]]', value))
    return tuple(map(tuple, value))


def _expected(name: str, example: str, value: Any) -> str:
    return (
        f"{name} of the constraints must be a list such as {example}, got {json.dumps(value):.80}"
    )


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
