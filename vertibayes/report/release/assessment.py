"""What a release tells: a verdict for each table, differences, and the tracing bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertibayes.network import Network
from vertibayes.report.release.released import Released


@dataclass(frozen=True)
class Assessment:
    """What a release tells."""

    def as_json(self) -> Mapping[str, Any]:
        """Return the entry `release` of summary.json."""
        return {}

    def sentences(self) -> list[str]:
        """Return what the command prints about the release."""
        return []


def assess(counter: Released, network: Network) -> Assessment:
    """Assess released tables and the network learned from them."""
    return Assessment()
