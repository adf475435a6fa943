"""The options of ``vertibayes calibrate``, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from vertibayes.calibration.absences import Away
from vertibayes.calibration.crc import Networks
from vertibayes.calibration.topologies import (
    Changing,
    network_of,
    node_names,
    read_network,
)
from vertibayes.settings import NETWORKS, DrawnNetwork
from vertibayes_protocols.calibration.choices import Mixing, Start
from vertibayes_protocols.calibration.graph import Graph

OF_KINDS = {
    "extra_edges": "adds to a network that is drawn",
    "changes": "draws a network again",
}


@dataclass(frozen=True)
class Request:
    """The options of ``vertibayes calibrate``; each is a setting of `vertibayes.settings`."""

    target: str
    rounds: int = 64
    rate: float = 0.05
    iterations: int = 1
    mixing: Mixing | None = None  # that of the network, if not given
    start: Start = "data"
    size: float | None = None
    structure: Path | None = None
    nodes: int | None = None
    network: str = "tree"
    extra_edges: int = 0
    changes: int | None = None
    drift: str = "none"
    leaving: float = 0.0
    returning: float = 0.5
    asleep: float = 0.0

    @property
    def is_file(self) -> bool:
        """Whether the network is that of a file."""
        return self.network not in NETWORKS

    def checked(self) -> Request:
        """Return the request with its mixing filled in; refuse what cannot be."""
        self._check_network()
        stays = not (self.changes or self.leaving or self.asleep)
        given: Mixing = self.mixing or ("relay" if stays else "mean")
        if given == "relay":
            for name, value in (("size", self.size), ("asleep", self.asleep)):
                if value:
                    raise ValueError(
                        f"--{name} has an effect with --mixing mean or metropolis alone, got relay"
                    )
            if self.changes:
                raise ValueError(
                    "--mixing relay needs a network that stays as it is: leave out --changes, or "
                    "use --mixing mean"
                )
        return replace(self, mixing=given)

    def _check_network(self) -> None:
        """Refuse options that do not fit the kind of network."""
        if not self.is_file:
            if self.nodes is None:
                raise ValueError(
                    f"specify --nodes N: --network {self.network} is drawn for N nodes"
                )
            if self.network == "small-world" and self.nodes < 5:
                raise ValueError(
                    f"--network small-world needs --nodes 5 or more, which it gives four "
                    f"neighbours each, got {self.nodes}"
                )
            if self.changes and self.network not in get_args(DrawnNetwork) and not self.extra_edges:
                raise ValueError(
                    f"--changes draws the network again, and each {self.network} is the same: use "
                    f"--network {' or '.join(get_args(DrawnNetwork))}, or --extra-edges"
                )
            return
        if not self.network.endswith(".json") and not Path(self.network).exists():
            raise ValueError(
                f"--network must be {', '.join(NETWORKS)} or a FILE.json, got {self.network}"
            )
        for name, does in OF_KINDS.items():
            if getattr(self, name):
                option = "--" + name.replace("_", "-")
                raise ValueError(f"{option} {does}: it has no effect on {self.network}")

    def network_of(self, generator: np.random.Generator) -> tuple[Graph, Networks]:
        """Return the network of the first round, and that of each round."""
        if self.is_file:
            graph = read_network(Path(self.network))
            if len(graph.nodes) < 2:
                raise ValueError(f"--network {self.network}: it must have at least 2 nodes, got 1")
            if self.nodes not in (None, len(graph.nodes)):
                raise ValueError(
                    f"--nodes {self.nodes}: {self.network} has {len(graph.nodes)} nodes; leave out "
                    "--nodes"
                )
            return graph, graph
        assert self.nodes is not None  # the request was checked
        names, more = node_names(self.nodes), {"extra_edges": self.extra_edges}
        try:
            if self.changes is None:
                graph = network_of(self.network, names, generator, **more)
                return graph, graph
            changing = Changing(self.network, names, self.changes, generator, **more)
        except ValueError as error:
            reason = str(error).replace("extra_edges", "--extra-edges")
            raise ValueError(f"--network {self.network}: {reason}") from None
        return changing(1), changing

    def absences(self, names: tuple[str, ...], generator: np.random.Generator) -> Away | None:
        """Return which nodes are away in which rounds; None if all stay."""
        if not self.leaving:
            return None
        chances = {"leaving": self.leaving, "returning": self.returning}
        return Away.drawn(names, self.rounds, generator, **chances)
