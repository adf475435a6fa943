"""The examples of sums, products and memberships, as they stand."""

from tests.e2e.test_examples import load


def test_sums(capsys):
    sums = load("additive_scheme").add_up()
    told = capsys.readouterr().out
    assert len(sums) == 60 and (sums < 0).any()
    assert f"total of the sums {sums.sum()};" in told


def test_products(capsys):
    assert load("product_scheme").multiply() == [420, 97 * 89 * 83, 60**3]
    told = capsys.readouterr().out
    assert "of 171700 multisets, a product leaves 6 (median)" in told
    assert f"product {97 * 89 * 83}: 1 multisets" in told


def test_membership():
    example = load("membership")
    assert example.sum_without("e") == 500
    assert example.keys_per_join(10) == 11
    assert example.keys_per_join(1000) < 160
