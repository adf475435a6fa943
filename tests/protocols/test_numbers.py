"""Columns that stay numbers: how a site reads, keeps and sums them."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.vertibayes.hdpnb_worlds import WAYS, federation_of
from vertibayes.splitting import split_columns
from vertibayes_mpc.additive_scheme import Parameters
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.errors import DataError, QueryRefusedError
from vertibayes_protocols.policy import ALLOW_ALL, Policy
from vertibayes_protocols.queries import Describe, Sums
from vertibayes_protocols.queries.sums.members import Members
from vertibayes_protocols.queries.sums.statistics import site_records
from vertibayes_protocols.queries.sums.terms import Terms
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoded import read_known_numbers
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.statistics import LocalData, Numeric, measure
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable

NAN = math.nan
BOUNDS = {"x": (0.0, 10.0)}


def read(values, bounds=(0, 10), **options):
    """Read a column of numbers beside one of states; return its numbers and the report."""
    columns = {"x": TextColumn.of(values), "y": TextColumn.of(["a", "b"] * (len(values) // 2))}
    data = SiteData.from_text("site", columns, Encoding(bounds={"x": bounds}, **options))
    assert list(data.variables) == ["y"] and data.numerics == {"x": Numeric("x", *bounds)}
    return data.numbers["x"].tolist(), data.report.message() or ""


# ---- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1", "2.5", "1e1", "-3"], [1, 2.5, 10, -3]),
        (["1 kg", "2 kg", "3 kg", "4"], [1, 2, 3, 4]),
        (["1,5", "2,5", "3", "4"], [1.5, 2.5, 3, 4]),
        (["1,234", "1,234,567", "3", "4"], [1234, 1234567, 3, 4]),
        (["1", "", "NA", "4"], [1, NAN, NAN, 4]),
        (["1", "1", "1", "1"], [1, 1, 1, 1]),
        ([0.1, 1 / 3, 2**0.5, None], [0.1, 1 / 3, 2**0.5, NAN]),
    ],
)
def test_numbers_are_read_as_in_binned_columns_and_not_binned(values, numbers):
    assert read(values)[0] == pytest.approx(numbers, rel=0, abs=0, nan_ok=True)


def test_missing_codes_of_one_column_are_missing():
    numbers, _ = read(["1", "99", "x", "4"], missing_codes=("x=99", "x"))
    assert numbers == pytest.approx([1, NAN, NAN, 4], nan_ok=True)


def test_numbers_beyond_the_bounds_are_kept_and_reported():
    numbers, report = read(["-1", "5", "", "11"])
    assert numbers == pytest.approx([-1, 5, NAN, 11], nan_ok=True)
    assert "2 of 3 numbers lie beyond the bounds, 0 to 10, and count as the nearer" in report
    assert "check --bounds" in report
    assert "beyond" not in read(["0", "5", "", "10"])[1]


def test_a_number_far_from_the_others_is_reported():
    values = [str(20 + i % 40) for i in range(200)] + ["999"] * 4
    assert "'999' (4 records) lies apart" in read(values, (0, 120))[1]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["1", "refused", "3", "refused"], "record 2: 'refused' is not a number (2 such records); "
         "if it says missing: --missing-codes refused"),
        (["a", "b", "a", "b"], "x has text, not numbers, as 'a'; --bounds is for numeric columns"),
        (["1.5", "2,5", "3", "4"], "numbers in several notations"),
        (["1 kg", "2 lb", "3 kg", "4 lb"], "numbers in several units"),
        (["", "", "", ""], "no values"),
        (["inf", "1", "2", "3"], "'inf' is not a number"),
    ],
)  # fmt: skip
def test_columns_that_are_not_of_numbers_are_refused(values, reason):
    with pytest.raises(DataError) as caught:
        read(values)
    assert reason in str(caught.value)


@pytest.mark.parametrize("bounds", [(1, 0), (1, 1), (NAN, 1), (0, math.inf), (-1e308, 1.7e308)])
def test_bounds_that_do_not_ascend_or_are_not_finite_are_refused(bounds):
    with pytest.raises(DataError, match="x: bounds must be finite and ascend, got"):
        Encoding(bounds={"x": bounds})


@pytest.mark.parametrize(
    ("way", "given"),
    [
        ("states", {"states": {"x": ("1", "2")}}),
        ("cut", {"cuts": {"x": [1]}}),
        ("categorical", {"categorical": ["x"]}),
        ("bins", {"own_bins": {"x": 0.2}}),
    ],
)
def test_a_column_has_bounds_or_states(way, given):
    with pytest.raises(ValueError, match=f"x: bounds and {way} exclude each other"):
        Encoding(bounds=BOUNDS, **given)


def test_new_records_are_read_value_by_value():
    unseen = []
    column = TextColumn.of(["1", "2 kg", "?", "refused", "", "refused"])
    numbers = read_known_numbers("x", column, Encoding(("?",)), unseen)
    assert numbers.tolist() == pytest.approx([1, NAN, NAN, NAN, NAN, NAN], nan_ok=True)
    assert [tuple(value) for value in unseen] == [("x", "2 kg", 1), ("x", "refused", 2)]


def test_the_numbers_of_a_frame_are_exact():
    values = np.random.default_rng(1).normal(size=20)
    values[3] = NAN
    frame = pd.DataFrame({"x": values, "y": ["a", "b"] * 10, "c": pd.Categorical([1, 2] * 10)})
    data = SiteData.from_frame(frame, Encoding(bounds={"x": (-3, 3), "c": (0, 5)}))
    assert np.array_equal(data.numbers["x"], values, equal_nan=True)
    assert data.numbers["c"].tolist() == [1, 2] * 10 and list(data.variables) == ["y"]


# ---- a site's data -------------------------------------------------------------------------------


def site_data():
    texts = {"x": ["3", "1", "", "2"], "y": ["a", "b", "a", "b"], "z": ["u", "u", "v", "v"]}
    columns = {name: TextColumn.of(values) for name, values in texts.items()}
    ids = TextColumn.of(["p3", "p1", "p4", "p2"])
    return SiteData.from_text("site", columns, Encoding(bounds=BOUNDS), ids)


def test_numbers_follow_their_records():
    data = site_data()
    assert data.records == 4
    assert data.in_order_of_ids().numbers["x"].tolist() == pytest.approx(
        [1, 2, 3, NAN], nan_ok=True
    )
    assert data.rows(np.array([1, 3])).numbers["x"].tolist() == [1, 2]
    taken = data.take(["x", "z"])
    assert list(taken.variables) == ["z"] and list(taken.numbers) == ["x"] == list(taken.numerics)
    alone = data.take(["x"])
    assert alone.records == 4 and not alone.variables and alone.local.records == 4


@pytest.mark.parametrize(
    ("numerics", "numbers", "reason"),
    [
        ({"x": Numeric("x", 0, 1)}, {}, "must have numbers of each column of numbers"),
        ({}, {"x": np.zeros(2)}, "must have numbers of each column of numbers"),
        ({"y": Numeric("y", 0, 1)}, {"y": np.zeros(2)}, "and no codes"),
        ({"x": Numeric("x", 0, 1)}, {"x": np.zeros(2, int)}, "x: numbers must have one axis"),
        ({"x": Numeric("x", 0, 1)}, {"x": np.zeros(3)}, "the same length"),
        ({"x": Numeric("x", 1, 0)}, {"x": np.zeros(2)}, "x: bounds must be finite and ascend"),
        ({"x": Numeric("x", 0, 1)}, {"x": np.array([0, np.inf])}, "x: numbers must be finite"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(numerics, numbers, reason):
    variables, codes = {"y": Variable("y", ("a", "b"))}, {"y": np.zeros(2, np.uint8)}
    with pytest.raises(DataError, match=reason):
        SiteData(variables, codes, numerics=numerics, numbers=numbers)


def test_tables_over_columns_refuse_numbers():
    with pytest.raises(ValueError, match="x: tables over columns have no numbers"):
        split_columns(site_data(), 2)


# ---- sums ----------------------------------------------------------------------------------------

Y = Variable("y", ("a", "b", "c"))


@pytest.fixture(autouse=True)
def _short_modulus(monkeypatch):
    monkeypatch.setattr(Parameters, "least_bits", 0)


def party(seed, bounds, names=("x",), records=9):
    """Return records whose numbers lie on both sides of any bounds, and some of them nowhere."""
    draw = np.random.default_rng(seed)
    numbers = {name: draw.normal(5, 8, records) for name in names}
    for column in numbers.values():
        column[draw.random(records) < 0.2] = NAN
    numerics = {name: Numeric(name, *bounds) for name in names}
    return LocalData({"y": Y}, {"y": draw.integers(0, 4, records)}, numerics, numbers)


def pooled(held, schema):
    """Return the statistics of all records in one place, between the schema's bounds."""
    codes = np.concatenate([data.codes["y"] for data in held.values()])
    numbers = {n: np.concatenate([d.numbers[n] for d in held.values()]) for n in schema.numerics}
    data = LocalData({"y": Y}, {"y": codes}, schema.numerics, numbers)
    return measure(schema.statistics, data)


def released(held, schema, via, privacy=None, policy=ALLOW_ALL):
    federation = federation_of(held, policy=policy)
    terms = Terms(schema, len(held), 9, privacy)
    query = Sums.of(federation.analyst, terms, Members(terms, federation.roles, via))
    with federation.session() as session:
        return session.ask(query)


@pytest.mark.parametrize("via", WAYS)
@pytest.mark.parametrize("centred", [False, True])
def test_sums_are_those_of_the_pooled_records_between_the_analysts_bounds(via, centred):
    own = [(0, 10), (-100, 100), (4, 5)]
    held = {f"p{i}": party(i, bounds) for i, bounds in enumerate(own)}
    schema = Schema(Y, {"x": Numeric("x", 0, 10)}, centred=centred)
    sums = released(held, schema, via).sums
    assert np.array_equal(sums, pooled(held, schema))
    wider = Schema(Y, {"x": Numeric("x", -20, 30)}, centred=centred)
    assert not np.array_equal(sums, pooled(held, wider))


def test_the_largest_numbers_count_as_the_bound():
    numbers = np.array([1e308, -1e308, 0.5, NAN])
    data = LocalData(
        {"y": Y}, {"y": np.zeros(4, int)}, {"x": Numeric("x", 0, 1e-300)}, {"x": numbers}
    )
    assert data.numerics["x"].centred(numbers).tolist() == [2**11, -(2**11), 2**11, 0]
    assert data.numerics["x"].grid(numbers).tolist() == [2**20, 0, 2**20, -1]


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ({"x": Numeric("x", 0, 1), "w": Numeric("w", 0, 1)}, "it has no column 'w'"),
        ({"x": Variable("x", ("a", "b"))}, "the column 'x' has numbers, and its states are asked"),
        ({"u": Numeric("u", 0, 1)}, "the column 'u' has states, and its numbers are asked for"),
    ],
)
def test_a_site_names_the_column_that_it_does_not_have(features, reason):
    held = {}
    for name in ("p0", "p1"):
        data = party(3, (0, 1))
        variables = {"y": Y, "u": Variable("u", ("a", "b"))}
        codes = {**data.codes, "u": np.zeros(9, int)}
        held[name] = LocalData(variables, codes, data.numerics, data.numbers)
    with pytest.raises(QueryRefusedError) as caught:
        released(held, Schema(Y, features), "masked")
    assert reason in str(caught.value)


def test_a_site_that_does_not_show_its_numbers_says_nothing_of_them():
    held = {f"p{i}": party(i, (0, 1)) for i in range(2)}
    policy = Policy(("y",), exact_sums=True, fewest_records=1, free_tables=True)
    with pytest.raises(QueryRefusedError, match="it does not show x"):
        released(held, Schema(Y, {"x": Numeric("x", 0, 1)}), "masked", policy=policy)


def test_sites_describe_states_alone_and_sum_the_numbers_of_their_data():
    federation = federation_of({f"p{i}": party(i, (0, 1)) for i in range(2)})
    with federation.session() as session:
        assert list(session.ask(Describe(("p0",)))["p0"].named()) == ["y"]
    role = federation.roles["p0"]
    role.batches = ()
    role.__post_init__()
    (data,) = site_records(role, Schema(Y, {"x": Numeric("x", 0, 10)}))
    assert np.array_equal(data.numbers["x"], party(0, (0, 1)).numbers["x"], equal_nan=True)


def spread(eps, names):
    """Return the mean squares of the noise on sums and on squares, of 2^11 and 2^22 a record."""
    held = {f"p{i}": party(i, (0, 10), names) for i in range(2)}
    schema = Schema(Y, {name: Numeric(name, 0, 10) for name in names}, centred=True)
    release = released(held, schema, "masked", Privacy(eps=eps, noise="polya"))
    noise = (release.sums - pooled(held, schema))[3:].reshape(-1, 2, 3).astype(float)
    return (noise[:, 0] / 2**11).var(), (noise[:, 1] / 2**22).var(), release.promise.copies


def test_noise_on_sums_of_numbers_has_the_promised_spread():
    # 360 draws of each kind, seeded: a variance has a standard error of sqrt(5 / 360), 12 % of it,
    # at most, and 48 % are four of these. Noise of scale s has the variance 2 s^2 a copy.
    names = tuple(f"x{i}" for i in range(120))
    parts = 1 + 2 * len(names)
    total, squares, copies = spread(float(parts) / 10, names)
    assert total == pytest.approx(copies * 2 * 10**2, rel=0.48)
    assert squares == pytest.approx(copies * 2 * 10**2, rel=0.48)
    less, _, copies = spread(float(parts) / 5, names)  # half the noise
    assert less != pytest.approx(copies * 2 * 10**2, rel=0.48)
