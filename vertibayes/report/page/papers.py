"""The methods of the project in one sentence each, with the papers that describe them."""

from __future__ import annotations

from typing import NamedTuple


class Method(NamedTuple):
    """What a method does, and who described it: authors, year, and DOI or address."""

    what: str
    papers: str


COUNTING = Method(
    "Columns are masked, and tables are counted from masked columns, by products of shares or by "
    "shuffles in turn.",
    "van Daalen, Ippel, Dekker, Bermejo (2024), VertiBayes; Beaver (1991); Laur, Willemson, Zhang "
    "(2011), doi:10.1007/978-3-642-24861-0_18; Chase, Ghosh, Poburinnaya (2020), "
    "doi:10.1007/978-3-030-64840-4_12",
)
ALGORITHMS = {
    "hybrid": Method(
        "Independence tests find which variables may be joined, ten orders of the variables are "
        "searched within these pairs, and hill climbing improves the best network.",
        "Andrews, Ramsey, Sanchez-Romero, Camchong, Kummerfeld (2023), "
        "doi:10.48550/arXiv.2310.17679; Colombo, Maathuis (2014), "
        "jmlr.org/papers/v15/colombo14a.html; Kuipers, Suter, Moffa (2022), "
        "doi:10.1080/10618600.2021.2020127; Teyssier, Koller (2005), arXiv:1207.1429",
    ),
    "hill_climbing": Method(
        "Arrows are added, removed and turned round as long as the BIC rises.",
        "Schwarz (1978), doi:10.1214/aos/1176344136 (BIC)",
    ),
    "tabu": Method(
        "Hill climbing that also makes the best worse step, and does not return to networks that "
        "it has visited.",
        "Glover (1989), doi:10.1287/ijoc.1.3.190",
    ),
    "pc": Method(
        "Independence tests remove pairs of variables, and rules direct the others (PC-stable).",
        "Colombo, Maathuis (2014), jmlr.org/papers/v15/colombo14a.html; Meek (1995), "
        "arXiv:1302.4972",
    ),
    "chow_liu": Method(
        "The tree with the most mutual information.",
        "Chow, Liu (1968), doi:10.1109/TIT.1968.1054142",
    ),
    "tan": Method(
        "A naive Bayes classifier whose features form a tree (TAN).",
        "Friedman, Geiger, Goldszmidt (1997), doi:10.1023/A:1007465528199",
    ),
    "exact": Method(
        "The network of the highest score among all networks.",
        "Silander, Myllymäki (2006), arXiv:1206.6875",
    ),
    "k2": Method(
        "In the given order, each variable gets the parents that raise its score (K2).",
        "Cooper, Herskovits (1992), doi:10.1007/BF00994110; van Daalen, Ippel, Dekker, Bermejo "
        "(2024), VertiBayes",
    ),
}
STRENGTHS = Method(
    "The structure is learned again from samples of the learned network (parametric bootstrap).",
    "Friedman, Goldszmidt, Wyner (1999), UAI; Scutari, Nagarajan (2013), "
    "doi:10.1016/j.artmed.2012.12.006",
)
PSEUDO_COUNT = Method(
    "Counts with a pseudo-count, divided by their sum.",
    "Jeffreys (1946)",
)
MISSING = {
    "em": Method(
        "Expectation maximization (EM) on the tables of the families; no record leaves its site.",
        "Lauritzen (1995); Lauritzen, Spiegelhalter (1988)",
    ),
    "synthetic": Method(
        "Three steps: a first network, synthetic records, and EM on these.",
        "van Daalen, Ippel, Dekker, Bermejo (2024), VertiBayes",
    ),
    "available": Method(
        "Each table counts the records that have a value of each of its variables.", ""
    ),
    "state": Method("A missing value is a state of its own.", ""),
}
RULES = {
    "exact": Method("Tables are released as they are.", ""),
    "cut": Method("Counts below a threshold are released as 0.", ""),
    "laplace": Method(
        "Discrete Laplace noise on each count.",
        "Canonne, Kamath, Steinke (2020), NeurIPS",
    ),
    "gaussian": Method(
        "Discrete normal noise on each count.",
        "Canonne, Kamath, Steinke (2020), NeurIPS; Bun, Steinke (2016), "
        "doi:10.1007/978-3-662-53641-4_24",
    ),
}
ESTIMATES = Method(
    "Sums that are known determine or bound the counts that were cut; these are estimated.",
    "Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar (2007), PODS",
)
TRACING = Method(
    "A bound of attacks that find out whether a person is in the data.",
    "Murakonda, Shokri, Theodorakopoulos (2021)",
)
VALIDATIONS = {
    name: Method(what, "van Daalen, Ippel, Dekker, Bermejo (2024), VertiBayes; Hanley, McNeil "
                 "(1982) for the AUC; Fawcett (2006) for the mean of ROC curves")
    for name, what in {
        "public": "Prediction of public records.",
        "scv": "Synthetic cross-validation (SCV).",
        "svdg": "Validation on generated data (SVDG).",
    }.items()
}  # fmt: skip

_HUAI = "Huai, Huang, Yang, Li, Qi (2015)"
_GIARETTA = "Giaretta, Marchioro, Markatos, Girdzijauskas (2023)"
_YILMAZ = "Yilmaz, Al-Rubaie, Chang (2019), doi:10.48550/arXiv.1905.01039"
NAIVE_BAYES = {
    "hdpnb": Method(
        "Sums of the parties' counts, under one draw of noise to which all parties add a part.",
        _HUAI,
    ),
    "vdpnb": Method("Tables of columns at several parties, with noise of the parties.", _HUAI),
    "federated": Method("Sums of the parties' counts with noise.", _GIARETTA),
    "gossip": Method("Counts pass from party to party without an aggregator.", _GIARETTA),
    "ldp": Method("Each person's record is perturbed before it leaves.", _YILMAZ),
}
NOISE = {
    "polya": Method("Each party adds a Polya share; the sum has one copy of noise.", _GIARETTA),
    "diluted": Method("Each party adds diluted geometric noise.", _HUAI),
    "laplace": Method("Laplace noise.", f"{_GIARETTA}; {_HUAI}"),
    "gaussian": Method("Normal noise.", "Canonne, Kamath, Steinke (2020), NeurIPS"),
    "none": Method("No noise.", ""),
}
ORACLES = Method(
    "A frequency oracle for each report.",
    f"{_YILMAZ}; Ye, Barg (2018), doi:10.48550/arXiv.1702.00610",
)
CALIBRATION = {
    "calibration": Method(
        "Statistics of a generative classifier are corrected by its own errors, at each node and "
        "by rounds (risk-based calibration).",
        "Pérez, Echegoyen, Santafé (2025)",
    ),
    "mean": Method("Each node averages its neighbourhood.", "Pérez, Echegoyen, Santafé (2025)"),
    "metropolis": Method("Metropolis weights.", "Xiao, Boyd, Lall (2005)"),
    "relay": Method("Sums travel along a spanning tree.", ""),
}
