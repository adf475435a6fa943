"""The words of the page that not every reader knows, each in one sentence.

The first sentence that uses such a word links to its explanation (`term`).
"""

from __future__ import annotations

from vertibayes.report.page.content import Term

WORDS = {
    "aic": ("AIC", "A score of a network: its fit, less one for each free parameter."),
    "analyst": ("analyst", "The party that asks the sites, and learns the result."),
    "arrow": (
        "arrow",
        "A direct dependence of one variable (the child, at the point) on another (the parent, at "
        "the start). It need not be a cause.",
    ),
    "auc": (
        "AUC",
        "The area under the ROC curve. Take one record that has a state and one that does not: "
        "the AUC is the probability that the model gives the first a higher probability of that "
        "state. Guessing has 0.5, and perfect ranking 1.",
    ),
    "bic": (
        "BIC",
        "A score of a network: its fit, less a price for each free parameter that grows with the "
        "number of records.",
    ),
    "bits": (
        "bits",
        "A bound on what an answer can tell: n bits distinguish at most 2 to the power of n cases.",
    ),
    "calibration": (
        "calibration",
        "Whether predicted probabilities come true: of the records with a predicted probability "
        "of 20%, about 20% should have the state.",
    ),
    "cell": ("cell", "One number of a table: the count of the records with one combination."),
    "choice": (
        "choice",
        "One step of learning the arrows. The sites compare candidates under masks, and only the "
        "winner is revealed.",
    ),
    "confusion": ("confusion", "How often each true state was predicted as each state."),
    "dealer": (
        "dealer",
        "A party without data, which supplies the random numbers that hide the columns.",
    ),
    "delta": ("delta", "The probability that a promise of differential privacy does not hold."),
    "differential_privacy": (
        "differentially private",
        "With or without one person's record, each result is about equally likely. Epsilon says "
        "how nearly: a result becomes at most e to the power of epsilon times as likely.",
    ),
    "digest": (
        "digest",
        "A fingerprint of the exact text of a study: owners who read the same digest approved the "
        "same study.",
    ),
    "direction": (
        "direction",
        "Of the samples that join two variables, the share whose arrow points the same way.",
    ),
    "divergence": (
        "Kullback-Leibler divergence",
        "How far one set of probabilities is from another: 0 if they are equal.",
    ),
    "em": (
        "EM",
        "Expectation maximization: missing values are replaced by what the model expects, and "
        "the model is learned again, until nothing changes.",
    ),
    "epsilon": (
        "epsilon",
        "The strength of the noise: a smaller epsilon protects more, and makes results less exact.",
    ),
    "fold": ("fold", "A part of the records that is kept for the test, while the rest is learned."),
    "gain": ("gain", "By how much the BIC of the network falls without the arrow."),
    "interval": (
        "95 % interval",
        "A range that would contain the mean in about 95 of 100 repetitions, if the folds were "
        "independent.",
    ),
    "k2": ("K2 score", "The logarithm of the probability of the records under the structure."),
    "ledger": ("ledger", "The list of everything that was revealed in a run, and to whom."),
    "likelihood": (
        "log-likelihood",
        "The logarithm of the probability that the network gives to the records.",
    ),
    "nats": ("nats", "The unit of natural logarithms; 1 nat is about 1.44 bits."),
    "parameter": ("free parameter", "A probability that the others of its row do not determine."),
    "pseudo_count": (
        "pseudo-count",
        "A small number that is added to each count, so that no probability is 0.",
    ),
    "review": (
        "review",
        "The verdict on a table about which a person must decide; \u201cpass\u201d means that no "
        "check objects, and \u201cfail\u201d that a count breaks the threshold.",
    ),
    "roc": (
        "ROC curve",
        "For each threshold of the predicted probability: the share of records with the state "
        "that are above it, against the share of records without the state that are above it.",
    ),
    "rule": (
        "release rule",
        "How tables leave the sites: counts below a threshold become 0 (cut), or every count has "
        "noise (laplace, gaussian).",
    ),
    "scv": (
        "SCV",
        "Synthetic cross-validation: a test on records that are drawn from the learned network. "
        "It is optimistic where a row of a table has few records.",
    ),
    "site": ("site", "An organization that holds some columns or records of the study."),
    "small_difference": (
        "small difference",
        "A count between 0 and the threshold that results when sums of two released tables are "
        "subtracted: it can uncover a count that was cut.",
    ),
    "strength": (
        "strength",
        "The share of the samples in which an arrow joins the same two variables again; samples "
        "are drawn from the learned network.",
    ),
    "svdg": (
        "SVDG",
        "Validation on generated data: in each fold a network is learned from the other folds, "
        "and tested on records that are drawn from the tables of the fold.",
    ),
    "threshold": ("threshold", "The smallest count that may be released, apart from 0."),
    "tracing": (
        "tracing",
        "An attack by somebody who knows a person's whole record and tries to find out whether "
        "the person is in the data.",
    ),
}


def term(word: str, text: str = "") -> Term:
    """Return a word of the glossary, as a link to its explanation.

    Examples
    --------
    >>> term("auc").text, term("site", "sites").text
    ('AUC', 'sites')
    """
    return Term(word, text or WORDS[word][0])
