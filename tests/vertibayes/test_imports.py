"""What a module loads: no circle of files, and no cryptography for pooled data."""

import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None
import numpy as np
from vertibayes import Family, PlainCounter, SiteData, Variable
data = SiteData({"x": Variable("x", ("a", "b"))}, {"x": np.array([0, 1, 0], np.uint8)})
assert PlainCounter(data).tables([Family("x")])[0].tolist() == [2, 1]
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("vertibayes_mpc", "vertibayes_protocols", "vertibayes", cache_dir=None)


def sort(graph, *more):
    """Put the files in an order in which each imports only earlier ones, if there is one."""
    sorter = TopologicalSorter()
    for module in graph.modules:
        sorter.add(module, *graph.find_modules_directly_imported_by(module))
    for importer, imported in more:
        sorter.add(importer, imported)
    sorter.prepare()


def test_no_files_import_each_other_in_a_circle(graph):
    sort(graph)


def test_an_import_upwards_would_close_a_circle(graph):
    with pytest.raises(CycleError):
        sort(graph, ("vertibayes_protocols.approval", "vertibayes_protocols.session"))


def test_counting_pooled_data_needs_neither_fcntl_nor_cryptography_nor_a_session():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_FCNTL], stdout=subprocess.PIPE, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert {name for name in loaded if name.split(".")[0] == "vertibayes_mpc"} <= {
        "vertibayes_mpc",
        "vertibayes_mpc.errors",
        "vertibayes_mpc.prefixed",
    }
    sessions = (
        "vertibayes_protocols.session",
        "vertibayes_protocols.queries",
        "vertibayes_protocols.roles",
        "cryptography",
    )
    assert not {name for name in loaded if name.startswith(sessions)}
    assert "vertibayes.counting.plain" in loaded


def test_nothing_imports_the_estimators_which_need_the_extra_sklearn(graph):
    estimators = {name for name in graph.modules if name.startswith("vertibayes.sklearn")}
    assert "vertibayes.sklearn.nodes" in estimators
    for module in graph.modules - estimators:
        assert not graph.find_modules_directly_imported_by(module) & estimators, module
