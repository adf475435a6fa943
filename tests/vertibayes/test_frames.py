import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import vertibayes
from vertibayes import Network, PlainCounter, Structure, fit_cpts, split_columns
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

FRAME = pd.DataFrame(
    {
        "sick": [True, False, False, True] * 10,
        "size": pd.Categorical(["big", "small", None, "big"] * 10, ["small", "big"]),
        "visits": [3.0, 1.0, 1.0, np.nan] * 10,
    },
    index=[f"p{i}" for i in range(40)],
)


def network(missing=False):
    structure = Structure({"sick": (), "size": ("sick",), "visits": ("sick",)})
    counter = PlainCounter(SiteData.from_frame(FRAME))
    return fit_cpts(counter, structure, pseudo_count=1, missing=missing)


def test_the_columns_of_a_frame_are_dealt_to_sites():
    parts = split_columns(FRAME, sites=2)
    pooled = SiteData.from_frame(FRAME)
    assert sorted(n for part in parts.values() for n in part.variables) == sorted(FRAME.columns)
    for part in parts.values():
        for name, codes in part.codes.items():
            assert np.array_equal(codes, pooled.codes[name])
    assert parts.keys() == split_columns(pooled, sites=2).keys()


def test_predictions_have_the_index_of_the_frame_and_a_column_per_state():
    found = network().predict_proba(FRAME.head(3), "sick")
    assert list(found.index) == ["p0", "p1", "p2"]
    assert list(found.columns) == ["False", "True"]
    assert found.loc["p0", "True"] > 0.9 and found.loc["p1", "False"] > 0.9
    assert np.allclose(found.sum(axis=1), 1)
    assert network().predict(FRAME.head(3), "sick").to_dict() == {
        "p0": "True", "p1": "False", "p2": "False",
    }  # fmt: skip


def test_frames_and_site_data_give_the_same_probabilities():
    by_frame = network().predict_proba(FRAME, "size")
    by_data = network().predict_proba(SiteData.from_frame(FRAME), "size")
    assert np.array_equal(by_frame.to_numpy(), by_data.to_numpy())
    assert list(by_data.index) == list(range(40))
    assert vertibayes.predict(network(), SiteData.from_frame(FRAME), "size").tolist() == (
        network().predict(FRAME, "size").tolist()
    )


def test_a_part_of_the_columns_and_other_columns_may_be_there():
    some = FRAME[["visits"]].assign(when=pd.Timestamp("2024-01-01"))
    whole = FRAME.assign(size=None)
    assert np.array_equal(
        network().predict_proba(some, "sick"), network().predict_proba(whole, "sick")
    )


def test_a_missing_value_is_its_state_where_the_network_has_one():
    learned = network(missing=True)
    assert learned.missing_states == {"size", "visits"}
    absent, unknown = FRAME.iloc[[3]], FRAME.iloc[[3]].drop(columns="visits")
    known = learned.predict_proba(absent, "sick").iloc[0]
    assert known["True"] > learned.predict_proba(unknown, "sick").iloc[0]["True"] > 0.5


def test_mistakes_in_predictions_are_named():
    with pytest.raises(ValueError, match="must be a variable of the network, got 'sck'"):
        network().predict_proba(FRAME, "sck")
    with pytest.raises(
        ValueError,
        match=r"data frame has no column of the model's .* the target: it has sick, when",
    ):
        network().predict_proba(FRAME[["sick"]].assign(when=1), "sick")
    twice = pd.concat([FRAME, FRAME[["size"]]], axis=1)
    with pytest.raises(ValueError, match="data frame: the column 'size' "):
        network().predict(twice, "sick")
    with pytest.raises(ValueError, match="'sick' has periods or durations"):
        network().predict(FRAME.assign(sick=pd.Timedelta("1h")), "size")


def test_an_unseen_value_of_a_data_frame_is_a_warning_and_missing():
    learned = network()
    novel = FRAME.assign(size=["huge", *FRAME["size"][1:]])
    with pytest.warns(
        UserWarning, match=r"the data frame has values .*: size: 'huge' \(1 record\)"
    ):
        found = learned.predict_proba(novel, "sick")
    wanted = learned.predict_proba(FRAME.assign(size=[None, *FRAME["size"][1:]]), "sick")
    assert found.equals(wanted)


def test_graphs_of_networkx():
    learned = network()
    graph = learned.to_networkx()
    assert (
        set(graph.edges)
        == set(learned.structure.edges)
        == set(learned.structure.to_networkx().edges)
    )
    assert list(graph.nodes) == list(learned.structure.nodes)
    assert graph.nodes["size"]["states"] == ("small", "big")
    assert graph.nodes["size"]["cpt"] is learned.cpts["size"]
    lone = Structure({"a": ()}).to_networkx()
    assert list(lone.nodes) == ["a"] and not lone.edges


def test_notebooks_show_a_drawing():
    learned = network()
    assert learned._repr_svg_() == learned.structure._repr_svg_()
    assert learned._repr_svg_().startswith("<svg") and ">visits</text>" in learned._repr_svg_()
    one = Network(
        Structure({"a": ()}), {"a": Variable("a", ("0", "1"))}, {"a": np.array([0.5, 0.5])}
    )
    assert ">a</text>" in one._repr_svg_()


def test_public_names_are_listed():
    assert set(vertibayes.__all__) <= set(dir(vertibayes))
    assert "read_model" in dir(vertibayes) and "annotations" not in dir(vertibayes)


def test_nothing_needs_pandas_before_a_frame_comes():
    check = (
        "import sys; from vertibayes import SiteData, Network, split_columns, read_model; "
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
