"""The forms of a page: for readers of screens, in light and dark, on a phone and on paper."""

import re

import pytest

from tests.report.tabs import card, node

Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
UNFOLD = (
    "() => document.querySelectorAll('details:nth-of-type(-n+2)').forEach((d) => { d.open = true })"
)
FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
CONTRAST = {"runOnly": ["color-contrast"]}
ALL_ELSE = {"rules": {"color-contrast": {"enabled": False}}}


CONTRASTS = """() => [...document.querySelectorAll('[data-node]')].map((group) => {
    const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const light = (colour) => {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)
            .map((value) => value / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const [box, text] = ['rect', 'text'].map((tag) => light(getComputedStyle(group.querySelector(`:scope > ${tag}`)).fill));
    return Math.max(box, text) / Math.min(box, text);
})"""  # noqa: E501


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_in_boxes_have_contrast_however_far_a_node_moved(shown, scheme):
    page = shown("asia")
    page.emulate_media(color_scheme=scheme)
    card(page, "smoke").get_by_role("combobox").select_option(label="yes")
    page.locator(".node").nth(0).evaluate("(group) => group.style.setProperty('--by', 1)")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) == 8 and min(contrasts) >= 4.5


@pytest.fixture(scope="module")
def unfolded(browser, addresses):
    """A function that shows a page with its panels filled and its first folds open."""
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()

    def show(name):
        page.goto(addresses[name])
        page.evaluate(UNFOLD)
        page.locator('[data-node="1"]').first.click()
        page.locator("#what-if li").first.click()
        return page

    yield show
    context.close()


@pytest.mark.parametrize("name", ["asia", "hostile", "cut", "numbers", "beside"])
def test_axe_finds_no_violation(unfolded, name):
    """Small pages have all kinds of elements; in a larger network there are more of each."""
    results = Axe().run(unfolded(name), options=ALL_ELSE)
    assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast_in_light_and_dark(unfolded, scheme):
    """The styles of a text do not depend on the data: a small page with cut counts has them."""
    page = unfolded("cut")
    page.emulate_media(color_scheme=scheme)
    results = Axe().run(page, options=CONTRAST)
    assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize("name", ["alarm", "hostile", "numbers"])
def test_the_page_fits_a_width_of_320_pixels(shown, name):
    page = shown(name, width=320, height=640)
    page.locator('[data-node="1"]').first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(FITS)


@pytest.mark.parametrize(
    "name", ["alarm", "wide", "cut", "numbers", "calibrated", "hostile", "beside"]
)
def test_a_phone_opens_the_page_fitted(browser, addresses, name):
    size = {"width": 390, "height": 844}
    context = browser.new_context(viewport=size, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(addresses[name])
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    assert page.evaluate("[visualViewport.scale, visualViewport.width]") == [1, 390]
    assert page.evaluate(FITS)
    small = "(fields) => fields.filter((f) => parseFloat(getComputedStyle(f).fontSize) < 16).length"
    fields = "main :is(input, select)"  # Safari zooms in if one with smaller letters is touched
    assert page.locator(fields).evaluate_all(small) == 0
    context.close()


BEYOND = """() => {
    document.querySelectorAll('details').forEach((each) => { each.open = true });
    const edge = document.querySelector('main').clientWidth + 1;
    const isOut = (element) => element.getBoundingClientRect().right > edge;
    return [...document.querySelectorAll('main *')].filter(isOut).map((each) => each.outerHTML);
}"""


@pytest.mark.parametrize(
    "name", ["alarm", "wide", "cut", "numbers", "calibrated", "hostile", "beside"]
)
def test_paper_cuts_no_table_and_has_no_controls(shown, name):
    page = shown(name, width=688)  # A4 without its margins
    page.locator('[data-node="2"]').first.focus()
    page.keyboard.press("Enter")
    page.emulate_media(media="print")
    assert page.evaluate(BEYOND) == []
    assert page.locator("main :is(button, input, select):visible:not(.look)").count() == 0


def test_the_print_form_has_what_is_set_and_no_tools(shown):
    page = shown("asia")
    card(page, "smoke").get_by_role("combobox").select_option(label="yes")
    node(page, "lung").click()
    page.emulate_media(media="print")
    text = page.locator("main").inner_text()
    assert "Set: smoke = yes" in text and "Probabilities of lung" in text
    assert "Clear selection" not in text and "Reset" not in text
    frame, drawing = (page.locator(f".network-frame{end}").bounding_box() for end in ("", " svg"))
    assert drawing["width"] <= frame["width"] and drawing["height"] <= frame["height"] + 1
    sheets = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
    assert 2 <= sheets <= 12
