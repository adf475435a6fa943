"""How well a network predicts: on public records, and without any (SCV, SVDG)."""

from vertibayes.validation.methods import Validation, public, scv, svdg

__all__ = ["Validation", "public", "scv", "svdg"]
