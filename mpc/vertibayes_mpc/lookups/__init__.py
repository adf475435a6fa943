"""Lookups: shares of a public function of secret counts, from shares of the counts.

The sites that hold a table's columns have shares of its cells, and need shares of a function of
each cell, a logarithm for a score or a cut for a release, without anybody seeing a cell. The
function is a sum of few products of a function of the count's high digit and one of its low digit
(`function`). The sites reveal the count under a mask that only the dealer knows, and turn the
dealer's one-hot vectors of this mask by what they reveal (`rounds`). `two_sites` and `many_sites`
have the messages, the security arguments and the costs.
"""

from vertibayes_mpc.lookups.function import PublicFunction, cut, log_gamma, log_power, rounded
from vertibayes_mpc.lookups.plan import Batch, LookupPlan
from vertibayes_mpc.lookups.programs import deal_lookups, look_up

__all__ = [
    "Batch",
    "LookupPlan",
    "PublicFunction",
    "cut",
    "deal_lookups",
    "log_gamma",
    "log_power",
    "look_up",
    "rounded",
]
