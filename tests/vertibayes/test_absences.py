import numpy as np
import pytest

from vertibayes.calibration.absences import Away
from vertibayes.calibration.topologies import node_names


def test_nodes_are_absent_from_the_first_to_the_last_round_of_a_span():
    away = Away(("a", "b", "c"), {"a": [(2, 3), (6, 6)], "b": [(3, 4)]})
    assert ["".join(sorted(away(t))) for t in range(1, 8)] == ["", "a", "ab", "b", "", "a", ""]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ({"z": [(1, 2)]}, "unknown node: 'z'"),
        ({"a": [(3, 2)]}, r"a: an absence must be .*, got \[3, 2\]"),
        ({"a": [(0, 2)]}, r"got \[0, 2\]"),
        ({"a": [(1, 3)], "b": [(3, 5)]}, "all nodes are absent in round 3"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(spans, message):
    with pytest.raises(ValueError, match=message):
        Away(("a", "b"), spans)


def test_a_drawn_schedule_has_the_share_of_absences_that_its_chances_imply():
    generator = np.random.default_rng(6)
    away = Away.drawn(node_names(40), 400, generator, leaving=0.1, returning=0.3)
    absent = [len(away(t)) for t in range(1, 401)]
    assert absent[0] == 0 and away(401) == frozenset()
    assert np.mean(absent[50:]) == pytest.approx(40 * 0.1 / 0.4, abs=1)
    leave = sum(len(away(t + 1) - away(t)) for t in range(1, 400))
    assert leave / sum(40 - n for n in absent[:-1]) == pytest.approx(0.1, abs=0.015)


def test_some_node_is_there_in_every_round_of_a_drawn_schedule():
    away = Away.drawn(["a", "b"], 50, np.random.default_rng(7), leaving=0.9, returning=0.1)
    assert max(len(away(t)) for t in range(1, 51)) == 1
    with pytest.raises(ValueError, match=r"probability of leaving must be in \[0, 1\], got 2"):
        Away.drawn(["a", "b"], 5, np.random.default_rng(7), leaving=2, returning=0.1)
