"""What a search by choices may ask: families of numbered variables, within its constraints.

Variables are numbered by name, and a set of variables is a bit mask, as in
`vertibayes.structure.family_scores`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from protocols.choices import Candidate
from protocols.variables import Family, axis_lengths
from vertibayes.network import Structure
from vertibayes.structure.bic import bic_gain
from vertibayes.structure.family_scores import Mask, Parents, bits, mask_of
from vertibayes.structure.search import Search


class ChoiceSpace:
    """The families of a search, as candidates of choices.

    Parameters
    ----------
    search : Search
        The search.

    Attributes
    ----------
    search : Search
        The search.
    size : int
        The number of variables.
    lengths : list of int
        The number of states of each variable.
    required, allowed : list of int
        For each child the parents that it must have, and that it may have.
    """

    def __init__(self, search: Search) -> None:
        self.search, self.size = search, len(search.names)
        lengths, constraints = axis_lengths(search.variables, search.missing), search.constraints
        self.lengths = [lengths[name] for name in search.names]
        place = {name: i for i, name in enumerate(search.names)}
        self.required = [
            mask_of(place[p] for p in constraints.required_parents(c)) for c in search.names
        ]
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
        return Structure({names[c]: self.family(c, p).parents for c, p in enumerate(dag)})

    def _fits(self, child: int, parents: Mask) -> bool:
        """Whether a child may have as many parents, and its table is small enough."""
        few = parents.bit_count() <= self.search.max_parents
        return few and self.search.fits(self._family(child, parents))

    def _family(self, child: int, parents: Mask) -> Family:
        names = self.search.names
        return Family(names[child], tuple(names[p] for p in bits(parents)))
