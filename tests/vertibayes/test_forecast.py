"""The forecast of a run: of the calls that a learner makes, from public sizes alone."""

import pytest

from tests.structure_worlds import example, known_network
from vertibayes import forecast as module
from vertibayes.cli.learn import depending
from vertibayes.counting.secure import SecureCounter
from vertibayes.options import Options, calls_of
from vertibayes.splitting import split_columns
from vertibayes.structure.search import silent
from vertibayes_protocols.federation import federate
from vertibayes_protocols.variables import Family


@pytest.fixture(scope="module", params=["k2", "hybrid"])
def run(request):
    """A run, its cost, and the forecasts before it and after its first call."""
    options = Options(algorithm=request.param)
    with federate(split_columns(example("alarm", 2000)[1], 3)) as federation:
        counter = SecureCounter.of(federation)
        calls = calls_of(counter, options)
        first = counter.forecast(*calls)
        counter.tables(calls[0])
        renewed = counter.forecast(*calls_of(counter, options, depending(counter, options)))
        options.learn_structure(counter, silent)
        return options, first, renewed, counter, federation.traffic


def test_bytes_and_rounds_are_within_a_factor_of_two(run):
    options, first, renewed, counter, traffic = run
    cost = first if options.by == "k2" else renewed
    tables = len(counter.ledger.tables)
    assert traffic.bytes / 2 < cost.bytes < 2 * traffic.bytes
    assert traffic.rounds / 2 < cost.rounds < 2 * traffic.rounds
    assert tables / 2 < cost.tables < 2 * tables


def test_seconds_are_those_of_this_machine(run, monkeypatch):
    options, first, _, counter, _ = run
    monkeypatch.setattr(module, "_yardstick", lambda: 3 * module.YARDSTICK_SECONDS)
    module.slowness.cache_clear()
    slow = counter.forecast(*calls_of(counter, options))
    monkeypatch.setattr(module, "_yardstick", lambda: module.YARDSTICK_SECONDS)
    module.slowness.cache_clear()
    usual = counter.forecast(*calls_of(counter, options))
    module.slowness.cache_clear()
    assert slow.seconds == pytest.approx(3 * usual.seconds)
    assert (slow.bytes, slow.rounds) == (first.bytes, first.rounds)


def test_which_pairs_depend_is_read_off_tables_that_were_revealed():
    options, network = Options(algorithm="hybrid"), known_network("alarm")
    with federate(split_columns(example("alarm", 2000)[1], 3)) as federation:
        counter = SecureCounter.of(federation)
        assert depending(counter, options) == [] and not counter.calls
        a, b = network.structure.edges[0]
        counter.tables([Family(b, (a,))])
        assert [*map(set, depending(counter, options))] == [{a, b}] and counter.calls == 1


def test_the_sentence_has_the_time_of_rounds_between_machines_alone():
    cost = module.Forecast(rounds=250)
    assert "250 rounds (waiting 25 s at 100 ms each)" in cost.sentence(apart=True)
    assert "waiting" not in cost.sentence()
