"""A decided winner is that of plain K2, also where lookups are so coarse that others are not."""

from __future__ import annotations

import numpy as np

from tests.protocols.choice_oracle import decided_wrongly
from tests.protocols.small import STATES, committed
from tests.protocols.test_choose import chosen, gain
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.queries.choices import lookups as lookups_module
from vertibayes_protocols.queries.choices import precision as choice_precision
from vertibayes_protocols.queries.choices.lookups import ChoiceLookups, choice_lookups
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

RECORDS = 300


def chosen_coarsely(monkeypatch):
    """Choose among near equals, with two fraction bits; return the data, choices and what is said.

    Logarithms are off by up to 0.44 nats, so that some scores are ranked wrongly.
    """
    monkeypatch.setattr(choice_precision, "LEAST_FRACTION_BITS", 2)
    monkeypatch.setattr(choice_precision, "MOST_FRACTION_BITS", 2)
    monkeypatch.setattr(lookups_module, "LOOKUP_ERROR_BITS", 0)
    generator = np.random.default_rng(3)
    codes = {name: generator.integers(0, 3, RECORDS).astype(np.uint8) for name in "uvwxyz"}
    for name in "vwxyz":  # some depend on u
        codes[name] = np.where(generator.random(RECORDS) < 0.4, codes["u"], codes[name])
    data = {
        site: SiteData({n: Variable(n, STATES) for n in names}, {n: codes[n] for n in names})
        for site, names in (("a", "uvw"), ("b", "xyz"))
    }
    pairs = [a + b for a in "uvwxyz" for b in "uvwxyz" if a != b]
    sets = tuple(((), gain(pair)) for pair in pairs)
    sets += tuple((gain(a), gain(b)) for a in pairs for b in pairs if a[0] == b[0] and a < b)
    asked = Choices(sets)
    choice_lookups.cache_clear()
    federation, _ = committed(data)
    winners, decided = chosen(federation, asked), federation.session.role.joined.decided
    choice_lookups.cache_clear()
    return data, asked, winners, decided


def test_a_decided_winner_is_that_of_plain_k2_however_coarse_the_scores(monkeypatch):
    data, asked, winners, decided = chosen_coarsely(monkeypatch)
    assert decided.count(True) > 5 and decided.count(False) > 5
    assert not decided_wrongly(data, asked, winners, decided)
    everything = (True,) * len(winners)
    assert decided_wrongly(data, asked, winners, everything), "plain K2 has other winners"


def test_without_a_margin_a_decided_winner_can_be_wrong(monkeypatch):
    monkeypatch.setattr(ChoiceLookups, "margin", 0)
    assert decided_wrongly(*chosen_coarsely(monkeypatch))
