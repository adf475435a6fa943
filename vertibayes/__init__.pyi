from vertibayes.bif import write_bif as write_bif
from vertibayes.choosing import Chooser as Chooser
from vertibayes.choosing import TableChooser as TableChooser
from vertibayes.choosing.secret import SecretChooser as SecretChooser
from vertibayes.counting import Counter as Counter
from vertibayes.counting import PlainCounter as PlainCounter
from vertibayes.counting.secure import SecureCounter as SecureCounter
from vertibayes.dag import Structure as Structure
from vertibayes.discretization import discretize as discretize
from vertibayes.discretization import mdlp_edges as mdlp_edges
from vertibayes.inference.adjustment import adjustment_sets as adjustment_sets
from vertibayes.inference.effects import standardized as standardized
from vertibayes.inference.prediction import predict as predict
from vertibayes.inference.prediction import predict_proba as predict_proba
from vertibayes.network import Network as Network
from vertibayes.network import read_bif as read_bif
from vertibayes.network import read_model as read_model
from vertibayes.options import Options as Options
from vertibayes.parameters.cpt import fit_cpts as fit_cpts
from vertibayes.parameters.cpt import scores as scores
from vertibayes.parameters.em import fit_em as fit_em
from vertibayes.parameters.em_tables import fit_em_from_tables as fit_em_from_tables
from vertibayes.parameters.three_steps import fit_three_steps as fit_three_steps
from vertibayes.prediction_over_sites import auc_over_sites as auc_over_sites
from vertibayes.prediction_over_sites import predict_over_sites as predict_over_sites
from vertibayes.records import read_records as read_records
from vertibayes.released import learn_released as learn_released
from vertibayes.splitting import split_columns as split_columns
from vertibayes.structure.constraints import Constraints as Constraints
from vertibayes.structure.equivalence import cpdag_of as cpdag_of
from vertibayes.structure.learners import k2 as k2
from vertibayes.structure.learners import learn_structure as learn_structure
from vertibayes.structure.strengths import (
    arc_strengths as arc_strengths,
)
from vertibayes.structure.strengths import (
    averaged_structure as averaged_structure,
)
from vertibayes.study import connect_study as connect_study
from vertibayes_protocols.federation import federate as federate
from vertibayes_protocols.opening import open_study as open_study
from vertibayes_protocols.release import Rule as Rule
from vertibayes_protocols.site.data import SiteData as SiteData
from vertibayes_protocols.variables import Family as Family
from vertibayes_protocols.variables import Rows as Rows
from vertibayes_protocols.variables import Variable as Variable

__version__: str
