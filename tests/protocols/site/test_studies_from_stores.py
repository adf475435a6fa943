"""One study from four stores, in any order of rows, with lists that overlap in part."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocols.hidden import FREE, Lists, random_lists
from tests.protocols.site.stores import as_csv, as_duckdb, as_parquet, as_postgresql
from tests.spreads import assert_learned_alike
from vertibayes.counting.secure import SecureCounter
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes_protocols.alignment import AlignmentRequest
from vertibayes_protocols.federation import federate
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.site.sources.reading import read_table


def arrow(lists, site):
    """Return a site's table as its database has it: numbers for people, nulls for no value."""
    people = lists.people[site]
    columns = {"person": pa.array(people + 1, pa.int32() if site in "ac" else pa.int64())}
    for name in lists.names[site]:
        states = [*lists.variables[name].states, None]
        columns[name] = pa.array([states[code] for code in lists.codes[name][people]], pa.string())
    return pa.table(columns)


def read(site, place, variables):
    """Return a site's data, read as `site.toml` says."""
    columns = read_table(place)
    ids = columns.pop("person")
    states = {name: variables[name].states for name in columns}
    matched = Identifiers.of(site, {"person": ids}, ("digits",))
    how = Encoding(states=states)
    data = SiteData.from_text(site, columns, how, ids)
    return replace(data, identifiers=matched).in_order_of_ids()


def from_stores(lists, folder, postgresql):
    """Return the sites' data, each from a store of another kind."""
    tables = {site: arrow(lists, site) for site in lists.people}
    places = {
        "a": as_csv(folder, tables["a"]),
        "b": as_parquet(folder, tables["b"]),
        "c": as_duckdb(folder, tables["c"]),
        "d": as_postgresql(postgresql, tables["d"], "study"),
    }
    return {site: read(site, place, lists.variables) for site, place in places.items()}


def assert_learned_as_pooled(lists, data, level, **options):
    pooled = learn(lists.plain, Options(**options))
    with federate(data, policy=FREE) as federation:
        request = AlignmentRequest(level, ("digits",))
        counter = SecureCounter.of(federation, alignment=request, order=[*lists.variables])
        learned = learn(counter, Options(**options))
    assert_learned_alike(learned, pooled)


@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 10**6))
@pytest.mark.parametrize("level", [1, 2])
def test_a_study_from_four_stores_is_learned_as_the_joined_table(level, tmp_path, postgresql, seed):
    lists = random_lists(seed, sites=4, variables=5)
    data = from_stores(lists, tmp_path, postgresql)
    assert_learned_as_pooled(lists, data, level, bootstrap=0)


@pytest.mark.laws
@pytest.mark.parametrize("level", [1, 2])
def test_alarm_from_four_stores_is_learned_as_the_joined_table(
    level, alarm_data, tmp_path, postgresql
):
    draw = np.random.default_rng(6)
    names = [*alarm_data.variables]
    lists = Lists(
        dict(alarm_data.variables),
        dict(alarm_data.codes),
        {site: draw.permutation(alarm_data.records)[:1800] for site in "abcd"},
        {site: names[place::4] for place, site in enumerate("abcd")},
    )
    data = from_stores(lists, tmp_path, postgresql)
    assert_learned_as_pooled(lists, data, level, algorithm="k2", max_parents=2)
