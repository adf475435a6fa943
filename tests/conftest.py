"""Data that several tests share."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tests import shown
from tests.structure_worlds import known_network
from vertibayes.sampling import sample
from vertibayes_protocols.site.data import SiteData

# Machines that run tests are shared: a slow example is no defect.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")

shown.watch().start()  # in all tests, also in threads that outlive one


def pytest_addoption(parser):
    parser.addoption("--machines", action="store_true", help="run the tests between processes too")


def pytest_collection_modifyitems(config, items):
    skipped = pytest.mark.skip(reason="takes minutes: `make test-machines` runs it")
    for item in items:
        if "machines" in item.keywords and not config.getoption("machines"):
            item.add_marker(skipped)


@pytest.fixture(autouse=True)
def what_sites_show_is_stated():
    """Fail a test in which a site shows the analyst more than its query's effects state."""
    shown.understated.clear()
    yield
    assert not shown.understated


DATA = os.environ.get("VERTIBAYES_DATA")
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="session")
def data_folder():
    """The folder of reference data; tests that need it are skipped where there is none."""
    if DATA is None:
        pytest.skip("VERTIBAYES_DATA names no folder of data")
    return Path(DATA)


@pytest.fixture(scope="session")
def alarm_network():
    return known_network("alarm")


@pytest.fixture(scope="session")
def alarm_data(alarm_network):
    return sample(alarm_network, 2000, seed=1)


@pytest.fixture(scope="session")
def results_folder(request, alarm_data, data_folder, tmp_path_factory):
    """The folder of a run's results, which `request.param` names; see tests/results_folders.py."""
    from tests.results_folders import made

    return made(request.param, tmp_path_factory.mktemp("results"), alarm_data, data_folder)


@pytest.fixture(scope="session")
def gaps(alarm_data):
    """ALARM's first ten columns, with a tenth of the cells missing in eight of them."""
    generator = np.random.default_rng(4)
    variables, codes = {}, {}
    for place, (name, variable) in enumerate(list(alarm_data.variables.items())[:10]):
        column = alarm_data.codes[name].copy()
        if place < 8:
            column[generator.random(len(column)) < 0.1] = len(variable.states)
        codes[name] = column
        variables[name] = type(variable)(name, variable.states, place < 8)
    return SiteData(variables, codes)


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, without a sandbox, because tests may run as root."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing: install Debian's package chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
