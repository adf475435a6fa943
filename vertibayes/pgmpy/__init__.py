"""pgmpy's own searches and estimators over a `Counter`, so that they learn from a federation.

A score of pgmpy needs of a variable and its parents only how often their states occur together, and
so do a test of independence and the estimate of a CPT. For each of them, one table of the counter
becomes a data frame: the records of these variables alone, in another order. pgmpy computes the
rest, as it does from pooled records.

A search asks for one score after another. `fit` runs each step of `HillClimbSearch` and of
`ExpertInLoop` once without counts, to see what the step asks, and asks for its tables in one call.

Leakage: the tables that pgmpy asks for, and no others; a `SecureCounter` notes them in its ledger.
See docs/python.md.
"""

from vertibayes.pgmpy.counted import CountedScore, CountedTest
from vertibayes.pgmpy.fitting import fit

__all__ = ["CountedScore", "CountedTest", "fit"]
