"""What a search may ask for: families of numbered variables, within its constraints."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from vertibayes.dag import Structure
from vertibayes.structure.bic import bic_gain
from vertibayes.structure.graphs import Mask, Parents, elements, mask_of
from vertibayes.structure.search import Search
from vertibayes_protocols.choices import Candidate
from vertibayes_protocols.variables import Family


class SearchSpace:
    """The families of a search; bit i of a set of variables is `search.names[i]`."""

    def __init__(self, search: Search) -> None:
        self.search, self.size = search, len(search.names)
        lengths, constraints = search.lengths, search.constraints
        self.lengths = [lengths[name] for name in search.names]
        place = {name: i for i, name in enumerate(search.names)}
        self.required = [
            mask_of(place[p] for p in constraints.required_parents(c)) for c in search.names
        ]
        start = search.start
        self.start = (
            self.required
            if start is None
            else [mask_of(place[p] for p in start.parents[c]) for c in search.names]
        )
        self.allowed = [
            mask_of(place[p] for p in search.names if p != c and constraints.allows(p, c))
            for c in search.names
        ]
        self.fits = cache(self._fits)
        self.family = cache(self._family)

    def gain(
        self, after: Iterable[tuple[int, Mask]], before: Iterable[tuple[int, Mask]] = ()
    ) -> Candidate:
        """Return by how much BIC rises if families take the place of others (`bic_gain`)."""
        new = [self.family(child, parents) for child, parents in after]
        return bic_gain(self.search, new, [self.family(c, parents) for c, parents in before])

    def structure(self, dag: Parents) -> Structure:
        """Return a structure by names."""
        names = self.search.names
        return Structure({names[c]: self.named(parents) for c, parents in enumerate(dag)})

    def named(self, variables: Mask) -> tuple[str, ...]:
        """Return the names of a set of variables, sorted."""
        return tuple(self.search.names[v] for v in elements(variables))

    def _fits(self, child: int, parents: Mask) -> bool:
        """Whether a child may have as many parents, and its table is small enough."""
        few = parents.bit_count() <= self.search.max_parents
        return few and self.search.fits(self._family(child, parents))

    def _family(self, child: int, parents: Mask) -> Family:
        return Family(self.search.names[child], self.named(parents))
