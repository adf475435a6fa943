"""Counters: a learner that asks for contingency tables does not know who counts, or how.

`PlainCounter` counts pooled data. `vertibayes.counting.secure.SecureCounter` asks a federation and
returns identical tables; this package does not import it, so that `PlainCounter` loads no
cryptography. Learners are written against `Counter` and ask for many families at once: one call
takes a few rounds on the network, and one more family in a call costs almost nothing.
"""

from vertibayes.counting.counter import Counter, Table
from vertibayes.counting.plain import PlainCounter

__all__ = ["Counter", "PlainCounter", "Table"]
