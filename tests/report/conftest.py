"""Pages of runs and networks, and a tab that shows them."""

import warnings

import numpy as np
import pytest

from tests.report.folders import counts_of, page_of
from tests.report.networks import random_network
from tests.report.pages import hostile, pages_of_runs, wide
from vertibayes.counting import PlainCounter
from vertibayes.network import from_pgmpy
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.report.page.render import write_report


@pytest.fixture(scope="session")
def alarm(alarm_network, alarm_data):
    """ALARM with CPTs from records; no record has some combinations of parents."""
    return fit_cpts(PlainCounter(alarm_data), alarm_network.structure)


@pytest.fixture(scope="session")
def asia():
    from pgmpy.utils import get_example_model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return from_pgmpy(get_example_model("asia"))


@pytest.fixture(scope="session")
def addresses(tmp_path_factory, alarm, alarm_data, asia):
    """The addresses of pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    sites = {f"site-{at}": list(alarm.variables)[at::3] for at in range(3)}
    counts = counts_of(alarm, alarm_data)
    hundred = random_network(np.random.default_rng(0), 100, most_parents=2, names=())
    pages = {
        "alarm": page_of(alarm, folder / "alarm", target="HR", sites=sites, counts=counts),
        "hundred": page_of(hundred, folder / "hundred", target="node 50"),
        "asia": page_of(asia, folder / "asia", sites={"clinic": ["asia", "smoke"]}),
        "hostile": page_of(hostile(), folder / "hostile", sites={"</script>": ["__proto__"]}),
        "wide": page_of(wide(), folder / "wide", target="letter"),
    }
    two = write_report(folder / "hostile", beside=folder / "hostile")
    return pages | {"beside": two.as_uri()} | pages_of_runs(folder)


@pytest.fixture(scope="session")
def tab(browser):
    """A tab without a network that notes what it says and what it asks for."""
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    assert page.said == []
    context.close()


@pytest.fixture
def shown(tab, addresses):
    """A function that shows a page in the tab."""

    def show(name, width=1200, height=900):
        tab.set_viewport_size({"width": width, "height": height})
        tab.emulate_media(color_scheme="light", media="screen", reduced_motion="reduce")
        tab.asked.clear()
        tab.goto(addresses[name])
        return tab

    yield show
    assert tab.said == []
