"""doc"""

from mpc.argmax.analyst import open_argmax
from mpc.argmax.dealer import deal_argmax
from mpc.argmax.plan import ArgmaxPlan
from mpc.argmax.site import argmax

__all__ = ["ArgmaxPlan", "argmax", "deal_argmax", "open_argmax"]
