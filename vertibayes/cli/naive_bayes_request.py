"""The options of ``vertibayes nb``, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec

from vertibayes_protocols.accounting import OPENDP, Privacy
from vertibayes_protocols.promise import LOCAL

BOTH = ("record", "party")
CHOICES = {  # of each method: what --noise, --via (the default first) and --protect may be
    "hdpnb": (("polya", "diluted", "none"), ("additive", "masked"), BOTH),
    "vdpnb": (("laplace", "none"), ("additive", "product"), ("record",)),
    "federated": (("polya", *LOCAL, "none"), ("masked", "additive"), BOTH),
    "gossip": (LOCAL, ("additive",), BOTH),
    "ldp": (("reports",), ("additive",), ("record",)),
}
OF_NOISE = {  # with which noise an option has an effect
    "accounting": ("polya", "diluted", "laplace"),
    "delta": ("diluted", "gaussian"),
    "gamma": ("polya", "diluted"),
    "protect": ("polya", "diluted", *LOCAL),
}
OWN = {  # the options that only one method has
    "iterations": "gossip",
    "reports": "ldp",
    "oracle": "ldp",
    "equal_bins": "ldp",
    "approach": "ldp",
}


@dataclass(frozen=True)
class Request:
    """The options of ``vertibayes nb``; each is a setting of `vertibayes.settings`."""

    method: str
    target: str
    parties: int
    epsilon: float | None = None
    noise: str | None = None
    accounting: str = "whole"
    protect: str = "record"
    delta: float = 1e-5
    gamma: float = 1.0
    via: str = ""  # that of the method, if not given
    alpha: float = 1.0
    iterations: int = 50
    reports: str = "one"
    oracle: str = "auto"
    equal_bins: int = 4
    approach: int = 3

    def checked(self) -> Request:
        """Return the request with its noise and its way filled in; refuse what cannot be."""
        noises, ways, protected = CHOICES[self.method]
        noise = self.noise or noises[0]
        via = self.via or ways[0]
        given = [("noise", noise, noises), ("via", via, ways)]
        given += [("protect", self.protect, protected)]
        for option, value, known in given:
            if value not in known:
                if known == ("reports",):
                    raise ValueError(
                        f"--noise {value}: {self.method} has the noise of --oracle and --approach; "
                        "leave out --noise"
                    )
                expected = " or ".join(known)
                raise ValueError(f"--{option} {value}: {self.method} has {expected}")
        self._check_noise(noise)
        for name, method in OWN.items():
            if self.method != method and getattr(self, name) != getattr(Request, name):
                option = name.replace("_", "-")
                raise ValueError(f"--{option} is an option of {method}, got --method {self.method}")
        if self.equal_bins == 1:
            raise ValueError("--equal-bins must be 0, or 2 and more, got 1")
        if self.equal_bins and self.approach != Request.approach:
            raise ValueError(
                f"--approach has an effect with --equal-bins 0 alone, got {self.equal_bins}"
            )
        return replace(self, noise=noise, via=via)

    def privacy(self) -> Privacy | None:
        """Return the noise of parties that hold records; None for exact sums."""
        if self.epsilon is None:
            return None
        return Privacy(
            eps=self.epsilon,
            accounting=self.accounting,
            protects=self.protect,
            noise=self.noise or "polya",
            delta=self.delta,
            gamma=self.gamma,
        )

    def _check_noise(self, noise: str) -> None:
        for name, noises in OF_NOISE.items():
            if getattr(self, name) != getattr(Request, name) and noise not in noises:
                if noise == "reports":
                    raise ValueError(f"--{name} has no effect with --method {self.method}")
                raise ValueError(
                    f"--{name} has an effect with --noise {' or '.join(noises)} alone, got {noise}"
                )
        exact = "none" in CHOICES[self.method][0]
        if (noise == "none") != (self.epsilon is None):
            also = ", or --noise none, and not both" if exact else ""
            raise ValueError(f"specify --epsilon E{also}")
        if noise in (*OPENDP, "reports") and find_spec("opendp") is None:
            raise ValueError(f"--noise {noise} is drawn by OpenDP: pip install 'vertibayes[noise]'")
