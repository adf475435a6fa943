"""Prediction over sites equals prediction of the joined records, and mistakes get one error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.structure_worlds import known_network
from tests.vertibayes.test_prediction import CHAIN, any_records
from vertibayes.dag import Structure
from vertibayes.inference.odds_tables import odds_tables
from vertibayes.inference.prediction import predict_proba, predicted
from vertibayes.network import Network
from vertibayes.prediction_over_sites import predict_over_sites
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Rows, Variable


@pytest.fixture(scope="module")
def child():
    return known_network("child")


def opened(data, sites, seed=0):
    """Return a federation over some sites, and its study."""
    federation = federate(split_columns(data, sites, seed), policy=ALLOW_ALL)
    return federation, open_study(federation.session, federation.sites, federation.dealer)


def with_missing(data, names, share=0.2, seed=1):
    """Return records in which a share of the cells of some columns is missing."""
    generator = np.random.default_rng(seed)
    variables, codes = dict(data.variables), dict(data.codes)
    for name in names:
        codes[name] = codes[name].copy()
        codes[name][generator.random(data.records) < share] = len(variables[name].states)
        variables[name] = replace(variables[name], missing=True)
    return SiteData(variables, codes)


def some(data, names):
    return SiteData({n: data.variables[n] for n in names}, {n: data.codes[n] for n in names})


IMPOSSIBLE_WITHIN = 1e-6  # the local prediction takes a limit by a share of 1e-9 (`MIXED`)


def check(network, data, sites, targets, evidence=None, seed=0):
    """Compare with the prediction of the joined records."""
    known = data if evidence is None else some(data, evidence)
    federation, study = opened(data, sites, seed)
    with federation:
        for target in targets:
            given_ = None if evidence is None else [name for name in evidence if name != target]
            ours = predict_over_sites(study, network, target, given_)
            joined = predicted(network, known, target)
            within = np.where(joined.impossible, IMPOSSIBLE_WITHIN, 1e-9)[:, None]
            assert (np.abs(ours - joined.probabilities) <= within).all()


@pytest.mark.parametrize("sites", [2, 3, 5])
def test_alarm_is_predicted_as_if_joined(alarm_network, alarm_data, sites):
    data = alarm_data.rows(np.arange(60))
    check(alarm_network, data, sites, list(alarm_network.variables)[sites::7], seed=sites)


@pytest.mark.parametrize("sites", [1, 3])
def test_child_is_predicted_as_if_joined(child, sites):
    data = sample(child, 60, seed=3)
    check(child, data, sites, ["Disease", "Sick", "LungParench", "CO2Report"], seed=sites)


def test_variables_without_evidence_are_summed_out(alarm_network, alarm_data, child):
    generator = np.random.default_rng(2)
    for network, data in ((alarm_network, alarm_data), (child, sample(child, 50, seed=5))):
        names = list(network.variables)
        few = [str(name) for name in generator.choice(names, 9, replace=False)]
        check(network, data.rows(np.arange(50)), 3, few[:4], few)


def test_missing_cells_are_summed_out(alarm_network, alarm_data, child):
    data = with_missing(alarm_data.rows(np.arange(80)), ["HISTORY", "CVP", "BP", "HREKG", "EXPCO2"])
    check(alarm_network, data, 3, ["CO", "LVFAILURE", "TPR", "VENTALV", "CVP"])
    data = with_missing(sample(child, 80, seed=5), ["LungFlow", "Age", "Sick"])
    check(child, data, 2, ["Disease", "LungFlow", "HypDistrib"])


def any_network(parents, seed=0, states=3):
    """Return a network with random CPTs."""
    generator = np.random.default_rng(seed)
    cpts = {}
    for name, above in parents.items():
        drawn = generator.exponential(size=[states] * (1 + len(above)))
        cpts[name] = drawn / drawn.sum(axis=0)
    variables = {name: Variable(name, tuple("xyz"[:states])) for name in parents}
    return Network(Structure(parents), variables, cpts)


def test_naive_bayes_with_any_cell_missing():
    features = [f"f{place}" for place in range(40)]
    network = any_network({"c": (), **dict.fromkeys(features, ("c",))})
    check(network, with_missing(sample(network, 50, seed=1), features), 3, ["c", "f3"][:1])


def test_a_tree_augmented_naive_bayes():
    parents = {"c": (), "f0": ("c",)} | {f"f{i}": ("c", f"f{(i - 1) // 2}") for i in range(1, 20)}
    network = any_network(parents, seed=2)
    data = sample(network, 50, seed=1)
    check(network, data, 3, ["c", "f2"])
    check(network, with_missing(data, ["f3", "f10", "f12", "f19"]), 3, ["c", "f4"])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 4), st.booleans())
def test_any_network_any_records(seed, count, sites, zeros):
    network, codes, target = any_records(seed, count)
    if zeros:
        network = with_zeros(network)
    codes = {n: column for n, column in codes.items() if len(network.variables[n].states) > 1}
    if not set(codes) - {target}:
        return
    variables = {name: replace(network.variables[name], missing=True) for name in codes}
    data = SiteData(variables, {n: column.astype(np.uint8) for n, column in codes.items()})
    check(network, data, min(sites, len(codes)), [target])


def with_zeros(network):
    """Return the network with zeros in place of its smallest probabilities."""
    cpts = {}
    for name, cpt in network.cpts.items():
        kept = np.where((cpt < 0.2) & (cpt < cpt.max(axis=0)), 0, cpt)
        cpts[name] = kept / kept.sum(axis=0)
    return replace(network, cpts=cpts)


def test_impossible_records_are_predicted_as_if_joined(alarm_network, alarm_data):
    generator = np.random.default_rng(4)
    codes = {n: generator.permutation(c[:80]) for n, c in alarm_data.codes.items()}
    data = SiteData(dict(alarm_data.variables), codes)
    alarm = with_zeros(alarm_network)
    federation, study = opened(data, 3)
    impossible = 0
    with federation:
        for target in ("CVP", "HR", "VENTLUNG", "CATECHOL", "SHUNT"):
            joined, marks = predicted(alarm, data, target)
            impossible += marks.sum()
            assert predict_over_sites(study, alarm, target) == pytest.approx(joined, abs=1e-6)
    assert impossible > 10


def test_a_target_that_no_site_holds_and_evidence_that_does_not_matter():
    data = some(sample(CHAIN, 40, seed=1), "bcd")
    federation, study = opened(data, 2)
    with federation:
        ours = predict_over_sites(study, CHAIN, "a")
        assert ours == pytest.approx(predict_proba(CHAIN, data, "a"), abs=1e-9)
        before = federation.traffic.messages
        assert predict_over_sites(study, CHAIN, "a", [], Rows(0, 3, 9)).tolist() == [[0.6, 0.4]] * 6
        assert federation.traffic.messages == before, "a constant is not asked for"


def test_a_missing_value_can_be_a_state_of_the_network():
    network = any_network({"c": (), "x": ("c",), "y": ("x",)})
    missing = Variable("x", ("x", "y", "missing"))
    network = replace(network, variables=network.variables | {"x": missing})
    data = sample(network, 40, seed=1)
    codes = {n: data.codes[n] for n in "cxy"}
    held = Variable("x", ("x", "y"), missing=True)
    pooled = SiteData(data.variables | {"x": held}, codes)
    check(network, pooled, 3, ["c", "y"])


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "evidence", "reason"),
    [
        ("z", ["b"], "the network has no variable 'z'; it has a, b, c, d"),
        ("a", ["b", "z"], "the study has no variable 'z'; it has"),
        ("a", ["b", "e"], "the network has no variable 'e'"),
        ("a", ["a", "b"], "the target 'a' cannot be evidence; leave it out"),
    ],
)
def test_unknown_names_are_refused(target, evidence, reason):
    data = sample(CHAIN, 20, seed=1)
    more = SiteData(
        data.variables | {"e": Variable("e", ("0", "1"))}, {**data.codes, "e": data.codes["a"]}
    )
    federation, study = opened(more, 2)
    with federation, pytest.raises(ValueError, match=reason):
        predict_over_sites(study, CHAIN, target, evidence)


def test_other_states_are_refused():
    other = Variable("b", ("no", "yes"))
    with pytest.raises(ValueError, match="b has other states at the sites than in the network"):
        odds_tables(CHAIN, "a", {"b": other})


def test_records_beyond_those_of_the_study_are_refused():
    federation, study = opened(sample(CHAIN, 20, seed=1), 2)
    with federation, pytest.raises(ValueError, match="does not lie within 20 records"):
        predict_over_sites(study, CHAIN, "a", None, Rows(0, 10, 30))


def test_a_table_that_is_too_large_says_how_to_mend_it():
    chain = {"f0": ()} | {f"f{place}": (f"f{place - 1}",) for place in range(1, 12)}
    network = any_network(chain)
    maybe = {f"f{place}": Variable(f"f{place}", tuple("xyz"), True) for place in range(1, 12)}
    reason = (
        r"to predict f0, .*a table of 16,384 joint values of .* would be looked up; of .*, values "
        r"may be missing; at most 4,096 are possible: leave some of these variables out"
    )
    with pytest.raises(ValueError, match=reason):
        odds_tables(network, "f0", maybe)
    network = any_network({"h": (), "t": ("h",)} | {f"f{i}": ("h",) for i in range(8)})
    with pytest.raises(ValueError, match=r"to predict t, through h, a table of 6,561 joint"):
        odds_tables(network, "t", {n: v for n, v in network.variables.items() if n not in "ht"})
