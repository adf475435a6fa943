"""The names of what a calibration can be; the command line's settings have them too."""

from __future__ import annotations

from typing import Literal, TypeAlias

Mixing: TypeAlias = Literal["mean", "metropolis", "relay"]
Covariance: TypeAlias = Literal["diagonal", "full"]
Start: TypeAlias = Literal["uniform", "data"]
