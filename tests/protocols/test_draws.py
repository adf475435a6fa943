"""No byte of a keyed stream serves twice in a session of tables, choices and releases."""

from __future__ import annotations

import vertibayes_mpc.lookups.plan
from tests.draws import noted
from tests.protocols.small import committed, count, data_of
from tests.protocols.test_choose import chosen, gain
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.open_study import OpenStudy
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.variables import Family

DATA = data_of(a="xy", b="z", c="w")
CHOICES = Choices(
    (((), gain("zx"), gain("zy"), gain("zw")), (gain("wx"), gain("wxz"), gain("wz"))), True
)
RELEASED = tuple(Family(names[0], tuple(names[1:])) for names in ("xz", "w", "wxz", "zx", "y"))
POLICY = Policy(free_tables=True, most_epsilon=1000.0)


def test_a_session_draws_each_byte_of_a_stream_once(monkeypatch):
    monkeypatch.setattr(vertibayes_mpc.lookups.plan, "PART_BYTES", 1 << 16)
    with noted() as draws:
        federation, study = committed(DATA, policy=POLICY)
        draws.keep()
        opened = OpenStudy(federation.session, federation.session.role.joined, 8)
        for _ in range(2):
            chosen(federation, CHOICES)
            count(federation, study, "xz", "zwy")
            for rule in (Rule("exact"), Rule("cut", fewest=3), Rule("laplace")):
                opened.release(FamilyTables(RELEASED, False, rule))
        draws.check()
