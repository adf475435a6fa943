"""The examples of noise and of scalar products, as they stand."""

import math

from tests.e2e.test_examples import load


def test_noise(capsys):
    found = load("noise").compare()
    assert found["shares of ten"] < found["shares, five may leak"] < found["half of ten may lie"]
    assert math.isclose(found["one trusted party"], found["shares of ten"], rel_tol=0.2)
    assert "at most" in capsys.readouterr().out


def test_scalar_products(capsys):
    for parties, subprotocols in ((2, 1), (3, 4), (4, 29)):
        result, run = load("scalar_product").multiply(parties)
        told = capsys.readouterr().out
        assert run == subprotocols
        assert told.count(f" {result} ") == 2, "and as many by plain counting"
