"""Approved studies: what a site's owner has agreed to, step by step.

A study's steps follow from its contract and from the winners of its choices. A site that knows both
derives each step itself, and answers no query that is not the next one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from protocols.choices import Choices
from protocols.release import FamilyTables

R = TypeVar("R")
Step: TypeAlias = Choices | FamilyTables
Winners: TypeAlias = tuple[int, ...]  # of each set, the place of the winner; none of a release
Steps: TypeAlias = Generator[Step, Winners, R]  # a learner, as it asks
