"""The settings of learning, validation and naive Bayes: of options and of files (`Setting`).

A group of settings is a table of `study.toml`, or what several commands have in common. Nothing
heavy is imported here: the command line needs these for its help.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

from vertibayes_protocols.calibration.choices import Covariance, Mixing, Start
from vertibayes_protocols.release import Rule, RuleKind
from vertibayes_protocols.settings import COLUMNS, ID_COLUMN, MISSING_CODES, REQUIRED, Setting

Learner: TypeAlias = Literal["bayesian_network", "naive_bayes", "calibration", "prediction"]
Algorithm: TypeAlias = Literal[
    "hybrid", "hill_climbing", "tabu", "pc", "chow_liu", "tan", "exact", "k2"
]
Missing: TypeAlias = Literal["em", "synthetic", "available", "state"]
Validate: TypeAlias = Literal["holdout", "public", "scv", "svdg"]
Method: TypeAlias = Literal["hdpnb", "vdpnb", "federated", "gossip", "ldp"]
Noise: TypeAlias = Literal["polya", "diluted", "laplace", "gaussian", "none"]
Accounting: TypeAlias = Literal["whole", "count"]
Reports: TypeAlias = Literal["one", "all", "all_at_full_eps"]
Oracle: TypeAlias = Literal["auto", "de", "sue", "oue", "she", "the", "ss"]
Protect: TypeAlias = Literal["record", "party"]
Via: TypeAlias = Literal["additive", "masked", "product"]
Drift: TypeAlias = Literal["none", "x", "y", "xy"]
FixedNetwork: TypeAlias = Literal["chain", "ring", "star", "complete"]
DrawnNetwork: TypeAlias = Literal["tree", "erdos-renyi", "small-world"]  # two draws differ
PSEUDO_COUNT = 0.5  # default number that is added to each cell of a CPT
NETWORKS = (*get_args(DrawnNetwork), *get_args(FixedNetwork))

LEARNER = Setting(
    "learner", "text", "What is learned.", "bayesian_network", choices=get_args(Learner)
)
QUIET = Setting("quiet", "flag", "Print errors and warnings only.", False)
OUT = Setting("out", "folder", "Folder for the results, which must be new or empty.", REQUIRED)

# ---- how records are read ------------------------------------------------------------------------

SPLIT = (
    Setting("data", "repeated", "One file, split over --sites; or NAME=FILE for each site, with "
            "--data repeated. CSV, gzipped or not, Parquet, or a folder of Parquet files.", (),
            shown="FILE"),
    Setting("sites", "whole", "Number of sites over which the columns of one file are split."),
    Setting("partition", "path", 'JSON file {"site": ["column", ...]}: which site holds what.'),
    Setting("align", "text", "Rule by which sites match people: exact, text, digits, name or "
            "date:%d.%m.%Y, applied to --id-column. The study has the people whom every site with "
            "a column of its own holds; if all columns are shared, everybody. An identifier of "
            "several columns has a rule for each, as --id-column name,birth --align "
            "name,date:%d.%m.%Y.", shown="RULE"),
)  # fmt: skip
SCHEMA = Setting("schema", "path", "Data dictionary in JSON, as `vertibayes schema --data` drafts "
                 "it; options for the same column count instead.")  # fmt: skip
READING = (
    ID_COLUMN,
    Setting("exclude", "texts", "Columns to leave out.", (), shown="COLUMN,..."),
    *COLUMNS,
    Setting("categorical", "texts", "Columns whose numbers or dates are names: they are never "
            "binned.", (), shown="COLUMN,..."),
    Setting("cut", "repeated", "Edges of a numeric column's bins: age=18,65 makes the bins up to "
            "18, up to 65 and above; repeat --cut for each column.", (),
            shown="COLUMN=EDGE,EDGE"),
    Setting("states", "repeated", "States of a column, in their order: answer=no,perhaps,yes; "
            "repeat --states for each column.", (), shown="COLUMN=STATE,STATE"),
    SCHEMA,
    Setting("ignore_case", "texts", "Columns in which values that differ only in case are one "
            "state.", (), shown="COLUMN,..."),
    Setting("seed", "whole", "Seed of the random choices: which site or party gets what, which "
            "records are held out.", 0),
)  # fmt: skip
BOUNDS = Setting("bounds", "repeated", "Bounds of a column that stays a number: age=17,90; "
                 "repeat --bounds for each column. Choose them without looking at the data.", (),
                 shown="COLUMN=LOW,HIGH")  # fmt: skip
MDLP = (
    Setting("mdlp", "text", "Cut numeric columns where their bins tell most about this column "
            "(MDLP, Fayyad and Irani 1993). One table is revealed for each of them.",
            shown="COLUMN"),
    Setting("pre_bins", "whole", "With --mdlp: number of bins of equal frequency between which a "
            "numeric column is cut.", 64, least=2, most=1000),
)  # fmt: skip
MEMORY = Setting("memory", "size", "Memory that all parties may use together, as 512MiB.", "1GiB")

# ---- Bayesian networks ---------------------------------------------------------------------------

LEARNING = (
    Setting("algorithm", "text", "How the structure is learned: hybrid (the default: tests of "
            "independence, then orders of the variables, then single edges), hill_climbing, tabu, "
            "pc, chow_liu, tan, exact (few variables), or k2 (the default with an ordering).",
            choices=get_args(Algorithm)),
    Setting("ordering", "names or file", "All variables, causes before effects: the structure is "
            "then learned by K2. Another order gives another network."),
    Setting("constraints", "path", "JSON file with what experts know: required and forbidden "
            'edges ([[parent, child], ...]), tiers ([["earliest", ...], ...]), roots and leaves '
            '(["name", ...]).'),
    Setting("structure", "path", 'JSON file {"nodes": [...], "edges": [[parent, child], ...]}, or '
            "a model (model.json, .bif, .bifxml), of which only the structure is read: learn only "
            "the CPTs of this structure."),
    Setting("start", "path", "File as that of --structure: the structure from which algorithm "
            "hill_climbing or tabu starts."),
    Setting("max_parents", "whole", "Maximum number of parents of a node; 4 if not given, and 3 "
            "with k2.", least=0, most=20),
    Setting("class_variable", "text", "With algorithm tan: the class, parent of all variables."),
    Setting("max_seconds", "number", "Time after which algorithm hybrid, hill_climbing or tabu "
            "ends with the best structure so far; not with a release, whose steps follow from the "
            "choices alone.", above=0),
    Setting("most_bits", "whole", "With a release: number of bits of winners at which the search "
            "ends with the structure so far; with algorithm hybrid or hill_climbing.", least=1),
    Setting("missing", "text", "How missing values are treated: filled by EM on the tables (em, "
            "the default if there are any), by the three steps of VertiBayes (synthetic), left out "
            "of each count (available), or counted as a state (state).",
            choices=get_args(Missing)),
    Setting("wider_cells", "whole", "With missing em: number of further cells to reveal, in tables "
            "widened by the most informative variable.", 0, least=0),
    Setting("synthetic_records", "whole", "Number of synthetic records to draw; as many as there "
            "are records if not given.", least=1),
    Setting("write_synthetic", "flag", "Write synthetic records, drawn from tables with missing "
            "values as a state; this reveals those tables.", False),
    Setting("em_restarts", "whole", "With missing synthetic: number of further random starts of "
            "EM.", 0, least=0),
    Setting("pseudo_count", "number", "Count added to each cell of the CPTs, so that no prediction "
            "has probability zero; 0 gives the maximum likelihood. Counts, structure and scores "
            "are exact either way.", PSEUDO_COUNT, least=0),
    Setting("structure_records", "whole", "Number of records in a random sample on which the "
            "structure is learned; all records if not given.", least=1),
    Setting("bootstrap", "whole", "Number of samples, drawn from the learned network, on which the "
            "structure is learned again, to show how sure each edge is; this asks the sites "
            "nothing. If not given, up to 10, for at most as long as learning took; 0 for "
            "none.", least=0,
            most=10_000),
)  # fmt: skip
VALIDATION = (
    Setting("validate", "texts", "Validations to run, which need a target: holdout and public "
            "test on real records, scv and svdg on synthetic ones.", (),
            choices=get_args(Validate), old="methods"),
    Setting("target", "text", "Outcome: first in the report's What if, and predicted by the "
            "validations."),
    Setting("folds", "whole", "Number of folds of scv and svdg; svdg needs 10 records in each.",
            10, least=2),
    Setting("holdout", "number", "With the validation holdout: share of the records that is left "
            "out of learning and tested on.", 0.2, above=0, below=1),
    Setting("public", "path", "Public records, as CSV, for the validation public."),
    MISSING_CODES,
)  # fmt: skip

RULE = Setting(
    "rule", "text", "The structure is learned by choices, which reveal no table, and the tables of "
    "the learned families alone are released: as they are (exact), with counts below fewest as 0 "
    "(cut), with counts as multiples of fewest (rounded), or with noise that the sites add "
    "(laplace, gaussian).", choices=get_args(RuleKind),
)  # fmt: skip
RELEASE = (
    RULE,
    Setting("fewest", "whole", "With rule cut: smallest count that is released. With rule rounded: "
            "counts are released as multiples of it.", 10, least=1),
    Setting("epsilon", "number", "With rule laplace or gaussian: privacy budget of all released "
            "tables together. It does not cover the structure.", 1.0, above=0),
    Setting("delta", "number", "With rule gaussian: probability that the promise fails.", 1e-6,
            above=0, below=1),
    Setting("dishonest", "number", "With rule laplace or gaussian: share of the sites that may "
            "work with the analyst; the noise of the others suffices. With 1, that of each site "
            "suffices.", 1.0, least=0, most=1),
    Setting("runs", "whole", "How often the study may be run.", 1, least=1),
)  # fmt: skip
RELEASE_OPTIONS = (replace(RULE, name="release"), *RELEASE[1:-1])  # of one run, by command line
RISK_APPETITE = Setting(
    "risk_appetite",
    "path",
    "With a release: an output checker's limits, a "
    "file as ACRO's default.yaml; the verdicts in release/ follow its "
    "safe_threshold and zeros_are_disclosive.",
)
BINS = Setting("bins", "whole", "With an AUC: number of bins of the log odds; use fewer bins with "
               "a cut or noise.", 128, least=2, most=256)  # fmt: skip
AUC_OPTIONS = (
    replace(RULE, name="auc", help="With --study: write the area under the ROC curve alone, from "
            "one table that is released as it is (exact), with counts below fewest as 0 (cut), "
            "with counts as multiples of fewest (rounded), or with noise that the sites add "
            "(laplace, gaussian)."),
    *(replace(s, help=s.help.replace("rule ", "auc ").replace("all released tables together. It "
      "does not cover the structure.", "the table.")) for s in RELEASE[1:-1]),
    BINS,
)  # fmt: skip

# ---- naive Bayes ---------------------------------------------------------------------------------

NAIVE_BAYES = (
    Setting("method", "text", "hdpnb: parties hold records, and their sum is released; federated: "
            "the same, or each party's own statistics with noise; gossip: parties pass estimates "
            "on; ldp: each person's record is perturbed; vdpnb: parties hold columns.",
            REQUIRED, choices=get_args(Method)),
    Setting("target", "text", "Column that is predicted.", REQUIRED),
    Setting("epsilon", "number", "Privacy budget of the noise; required except with noise none.",
            least=1e-6, most=100),
    Setting("noise", "text", "Noise on the counts. hdpnb: polya (the parties' shares of one draw, "
            "the default), diluted (as published) or none; federated: polya, laplace or gaussian "
            "(one draw at each party), or none; gossip: laplace or gaussian; vdpnb: laplace or "
            "none.", choices=get_args(Noise)),
    Setting("accounting", "text", "Whether epsilon is the budget of everything released about what "
            "is protected (whole) or of each count (count).", "whole",
            choices=get_args(Accounting)),
    Setting("protect", "text", "What the noise protects: one record, or all records of one party "
            "(where parties hold records).", "record", choices=get_args(Protect)),
    Setting("delta", "number", "With diluted or gaussian noise: probability that the promise "
            "fails.", 1e-5, above=0, below=1),
    Setting("gamma", "number", "With polya or diluted noise: minimum share of the parties that are "
            "honest.", 1.0, above=0, most=1),
    Setting("via", "text", "hdpnb, federated: sums under additive encryption (the default of "
            "hdpnb) or by masks (that of federated); vdpnb: predictions by sums of logarithms "
            "(additive, the default) or by products of counts (product).",
            choices=get_args(Via)),
    Setting("alpha", "number", "Count added to each count of a feature.", 1.0, least=0),
    Setting("iterations", "whole", "gossip: how often each party sends its estimate to another.",
            50, least=1, most=10_000),
    Setting("reports", "text", "ldp: whether a person answers one question, all questions with a "
            "part of epsilon each, or all questions with the whole epsilon each, which costs their "
            "sum.", "one", choices=get_args(Reports)),
    Setting("oracle", "text", "ldp: how the states of a person are perturbed; auto takes the "
            "oracle of least variance for each question.", "auto", choices=get_args(Oracle)),
    Setting("equal_bins", "whole", "ldp: number of bins of equal width of a column that stays a "
            "number; 0 fits normal distributions.", 4, least=0, most=1000),
    Setting("approach", "whole", "ldp, 0 equal bins: how a number is perturbed; 1: all numbers "
            "with noise, 2: one bit about one number, 3: one number with noise.", 3, least=1,
            most=3),
)  # fmt: skip
TEST = (
    Setting("test", "path", "Records, as CSV, on which the model is tested."),
    Setting("holdout", "number", "Share of the records that is held out and tested on.",
            above=0, below=1),
)  # fmt: skip
MEMBERSHIP = (  # of parties between machines
    Setting("dropouts", "number", "Share of the members that may be missing from a release.", 0.0,
            least=0, below=1),
    Setting("dishonest", "number", "Share of the members that may work with the aggregator.", 0.0,
            least=0, below=1),
    Setting("most_records", "whole", "Maximum number of records of a party in a release.", least=1),
)  # fmt: skip
PREDICT = Setting(
    "predict", "whole", "vdpnb between machines: number of records, first by identifier, "
    "whose class is predicted over the sites.", least=1,
)  # fmt: skip
PARTIES = Setting(
    "parties", "whole", "Number of parties to which the records or columns are dealt.", REQUIRED
)

# ---- predictions over sites ----------------------------------------------------------------------

PREDICTION = (
    Setting("model", "path", "The network: model.json, .bif or .bifxml. The owners of the sites "
            "need this file to approve the study.", REQUIRED),
    Setting("target", "text", "Variable that is predicted.", REQUIRED),
    Setting("evidence", "texts", "Variables whose values predict the target; if not given, all of "
            "the study that the network has.", ()),
    Setting("may_be_missing", "texts", "Variables of the evidence of which sites miss values.", ()),
    Setting("records", "whole", "Number of records that are predicted, drawn at random; all "
            "records if not given.", least=1),
    BINS,
)  # fmt: skip

# ---- calibration without a server ----------------------------------------------------------------

CALIBRATION = (
    Setting("target", "text", "Column that is predicted.", REQUIRED),
    Setting("rounds", "whole", "Number of rounds, in which each node sends its statistics to its "
            "neighbours once.", 64, least=1, most=10_000),
    Setting("rate", "number", "Learning rate: how far one round moves the statistics.", 0.05,
            above=0, most=1),
    Setting("iterations", "whole", "How often a node updates the statistics in each round.", 1,
            least=1, most=100),
    Setting("mixing", "text", "How nodes combine statistics: relay passes exact sums along a "
            "spanning tree (the default); mean averages the neighbours, as published (the default "
            "where the network changes, or nodes leave or sleep); metropolis averages them so "
            "that all nodes have the same influence.", choices=get_args(Mixing)),
    Setting("start", "text", "What nodes start from: 9 parts the statistics of their own records "
            "and 1 part equal probabilities (data), or equal probabilities alone (uniform, as "
            "published).", "data", choices=get_args(Start)),
    Setting("size", "number", "With mean or metropolis: number of records that equal probabilities "
            "stand for at the start, whole or in part; the records per node divided by the rate if "
            "not given.", above=0),
    Setting("structure", "path", 'JSON file {"nodes": [...], "edges": [[parent, child], ...]}, or '
            "a model (model.json, .bif, .bifxml), of which only the structure is read: the "
            "classifier is this Bayesian network instead of naive Bayes."),
)  # fmt: skip
BETWEEN_MACHINES = (
    Setting("most_records", "whole", "Maximum number of records of a site.", REQUIRED, least=1),
    Setting("shown", "flag", "Whether sites send their statistics to their neighbours, which relay "
            "needs; otherwise a neighbour sees the sum over its neighbourhood alone.", False),
    Setting("rounds_per_part", "whole", "Number of rounds in a session: how long a site that is "
            "back waits at most.", 16, least=1),
)  # fmt: skip
NEIGHBOURS = (  # the table [network] of a study
    Setting("kind", "text", "Which sites are neighbours, in the order of [sites].",
            choices=get_args(FixedNetwork)),
    Setting("edges", "pairs", "The pairs of sites that are neighbours.", (), least=1),
)  # fmt: skip
SIMULATION = (  # of nodes in this process
    Setting("nodes", "whole", "Number of nodes to which the records are dealt; required unless "
            "network is a file.", least=2),
    Setting("network", "text", f"Which nodes are neighbours: {', '.join(NETWORKS)}, or a FILE.json "
            'with {"nodes": [...], "edges": [[a, b], ...]}.', "tree", shown="KIND|FILE.json"),
    Setting("extra_edges", "whole", "Number of edges, drawn at random, that are added to the "
            "network.", 0, least=0),
    Setting("changes", "whole", "The network is drawn again after this number of rounds; it stays "
            "as it is if not given.", least=1),
    Setting("drift", "text", "How the records of nodes differ: not at all, as they are dealt at "
            "random (none), in features (x), in classes (y), or in both (xy).", "none",
            choices=get_args(Drift)),
    Setting("leaving", "number", "Probability that a node leaves before a round. A node that comes "
            "back has lost its statistics.", 0.0, least=0, below=1),
    Setting("returning", "number", "Probability that a node that has left comes back before a "
            "round.", 0.5, least=0, most=1),
    Setting("asleep", "number", "With mean or metropolis: probability that a node sleeps through a "
            "round; the nodes that are awake then update one after another.", 0.0, least=0,
            below=1),
    Setting("numbers", "texts", "Columns that stay numbers, between the least and the largest "
            "value in the file; all: each column with three or more different numbers, except "
            "those that categorical, cut or bounds name.", (), shown="COLUMN,...|all"),
    Setting("covariance", "text", "Whether numbers are independent within a class (diagonal), or "
            "have all their covariances there (full): quadratic discriminant analysis.", "diagonal",
            choices=get_args(Covariance)),
)  # fmt: skip

USED_BY = {  # which rules use a setting of a rule
    "fewest": ("cut", "rounded"),
    "epsilon": ("laplace", "gaussian"),
    "delta": ("gaussian",),
    "dishonest": ("laplace", "gaussian"),
}


def rule_of(
    values: Mapping[str, Any], name: str = "rule", named: Container[str] = ()
) -> Rule | None:
    """Return the rule of the values of `RELEASE`; None without a rule.

    Values that the rule does not use are refused if they are not the default, or are `named`.
    """
    kind, own = values[name], Rule("exact")
    given = {key: values[key] for key in USED_BY}
    for key, kinds in USED_BY.items():
        if (key in named or given[key] != getattr(own, key)) and kind not in kinds:
            raise ValueError(
                f"`{key}` needs `{name}` {' or '.join(kinds)}, got {kind or 'no rule'}"
            )
    return None if kind is None else Rule(kind, **given)
