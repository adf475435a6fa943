"""Bayesian networks from data whose columns lie in different organizations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vertibayes_protocols import RELEASE

if TYPE_CHECKING:
    from vertibayes.bif import write_bif
    from vertibayes.choosing import Chooser, TableChooser
    from vertibayes.choosing.secret import SecretChooser
    from vertibayes.counting import Counter, PlainCounter
    from vertibayes.counting.secure import SecureCounter
    from vertibayes.dag import Structure
    from vertibayes.discretization import discretize, mdlp_edges
    from vertibayes.inference.adjustment import adjustment_sets
    from vertibayes.inference.effects import standardized
    from vertibayes.inference.prediction import predict, predict_proba
    from vertibayes.network import Network, read_bif, read_model
    from vertibayes.options import Options
    from vertibayes.parameters.cpt import fit_cpts, scores
    from vertibayes.parameters.em import fit_em
    from vertibayes.parameters.em_tables import fit_em_from_tables
    from vertibayes.parameters.three_steps import fit_three_steps
    from vertibayes.prediction_over_sites import auc_over_sites, predict_over_sites
    from vertibayes.records import read_records
    from vertibayes.released import learn_released
    from vertibayes.splitting import split_columns
    from vertibayes.structure.constraints import Constraints
    from vertibayes.structure.equivalence import cpdag_of
    from vertibayes.structure.learners import k2, learn_structure
    from vertibayes.structure.strengths import arc_strengths, averaged_structure
    from vertibayes.study import connect_study
    from vertibayes_protocols.federation import federate
    from vertibayes_protocols.opening import open_study
    from vertibayes_protocols.release import Rule
    from vertibayes_protocols.site.data import SiteData
    from vertibayes_protocols.variables import Family, Rows, Variable

__version__ = RELEASE

_HOMES = {
    "Chooser": "vertibayes.choosing",
    "Constraints": "vertibayes.structure.constraints",
    "Counter": "vertibayes.counting",
    "Family": "vertibayes_protocols.variables",
    "Network": "vertibayes.network",
    "Options": "vertibayes.options",
    "PlainCounter": "vertibayes.counting",
    "Rows": "vertibayes_protocols.variables",
    "Rule": "vertibayes_protocols.release",
    "SecretChooser": "vertibayes.choosing.secret",
    "SecureCounter": "vertibayes.counting.secure",
    "SiteData": "vertibayes_protocols.site.data",
    "Structure": "vertibayes.dag",
    "TableChooser": "vertibayes.choosing",
    "Variable": "vertibayes_protocols.variables",
    "adjustment_sets": "vertibayes.inference.adjustment",
    "arc_strengths": "vertibayes.structure.strengths",
    "auc_over_sites": "vertibayes.prediction_over_sites",
    "averaged_structure": "vertibayes.structure.strengths",
    "connect_study": "vertibayes.study",
    "cpdag_of": "vertibayes.structure.equivalence",
    "discretize": "vertibayes.discretization",
    "federate": "vertibayes_protocols.federation",
    "fit_cpts": "vertibayes.parameters.cpt",
    "fit_em": "vertibayes.parameters.em",
    "fit_em_from_tables": "vertibayes.parameters.em_tables",
    "fit_three_steps": "vertibayes.parameters.three_steps",
    "k2": "vertibayes.structure.learners",
    "learn_released": "vertibayes.released",
    "learn_structure": "vertibayes.structure.learners",
    "mdlp_edges": "vertibayes.discretization",
    "open_study": "vertibayes_protocols.opening",
    "predict": "vertibayes.inference.prediction",
    "predict_over_sites": "vertibayes.prediction_over_sites",
    "predict_proba": "vertibayes.inference.prediction",
    "read_bif": "vertibayes.network",
    "read_model": "vertibayes.network",
    "read_records": "vertibayes.records",
    "scores": "vertibayes.parameters.cpt",
    "split_columns": "vertibayes.splitting",
    "standardized": "vertibayes.inference.effects",
    "write_bif": "vertibayes.bif",
}

__all__ = [
    "Chooser",
    "Constraints",
    "Counter",
    "Family",
    "Network",
    "Options",
    "PlainCounter",
    "Rows",
    "Rule",
    "SecretChooser",
    "SecureCounter",
    "SiteData",
    "Structure",
    "TableChooser",
    "Variable",
    "adjustment_sets",
    "arc_strengths",
    "auc_over_sites",
    "averaged_structure",
    "connect_study",
    "cpdag_of",
    "discretize",
    "federate",
    "fit_cpts",
    "fit_em",
    "fit_em_from_tables",
    "fit_three_steps",
    "k2",
    "learn_released",
    "learn_structure",
    "mdlp_edges",
    "open_study",
    "predict",
    "predict_over_sites",
    "predict_proba",
    "read_bif",
    "read_model",
    "read_records",
    "scores",
    "split_columns",
    "standardized",
    "write_bif",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the command line starts without numpy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names, which `__getattr__` imports."""
    return [*__all__, "__version__"]
