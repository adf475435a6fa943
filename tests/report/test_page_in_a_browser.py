"""The page of a run, used as a reader uses it: by mouse and keyboard, and offline."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.report.folders import counts_of
from tests.report.tabs import card, focused, node, percents, posteriors


def test_a_click_shows_a_nodes_neighbourhood_and_its_table(shown, alarm):
    page = shown("alarm")
    node(page, "HR,").click()
    structure = alarm.structure
    tags = page.locator(".node:has(.tag:not(:empty))")
    words = {
        tag.get_attribute("aria-label").split(",")[0]: tag.locator(".tag").text_content()
        for tag in tags.all()
    }
    blanket = structure.moral_neighbours()["HR"]
    assert set(words) == blanket
    assert {name for name, word in words.items() if word == "parent"} == {*structure.parents["HR"]}
    faded = page.locator(".node.is-faded").count()
    assert faded == len(structure.nodes) - 1 - len(blanket)
    assert page.locator(".edge.is-into").count() == len(structure.parents["HR"]) + 1  # legend
    assert "HR, at site-" in page.locator(".network-status").text_content()
    first = page.locator("#cpt-panel tbody tr").first
    assert first.locator(".share").all_text_contents() == percents(alarm.rows("HR")[0])
    page.get_by_role("button", name="Clear selection").click()
    assert page.locator(".node.is-faded").count() == 0


def test_the_picture_of_a_small_network_is_not_enlarged(shown):
    page = shown("calibrated")
    pictures = page.locator(".picture img").all()
    curves, network = (picture.bounding_box()["width"] for picture in pictures)
    assert network < 300 < 900 < curves


def test_counts_stand_beside_probabilities_and_empty_rows_are_marked(shown, alarm, alarm_data):
    page = shown("alarm")
    unseen = next(name for name, count in alarm.unseen.items() if count)
    node(page, f"{unseen},").click()
    marked = page.locator("#cpt-panel .unseen").count()
    assert marked == alarm.unseen[unseen] or page.locator("#cpt-panel .pages").count()
    counts = counts_of(alarm, alarm_data)["families"][unseen]["counts"]
    first = page.locator("#cpt-panel tbody tr").first.locator(".count")
    assert first.all_text_contents() == [f"{count:,}" for count in counts[0]]


def test_the_keyboard_alone_reaches_nodes_tables_and_what_if(shown, alarm):
    page = shown("alarm")
    page.locator("#network-search").focus()
    page.keyboard.type("press")
    assert page.locator("#network-found li").all_text_contents() == ["PRESS"]
    page.keyboard.press("ArrowDown")
    assert page.locator("#network-search").get_attribute("aria-activedescendant")
    page.keyboard.press("Enter")
    assert focused(page).startswith("PRESS, at site-")
    parents = alarm.structure.parents["PRESS"]
    page.keyboard.press("ArrowUp")
    first = focused(page)
    page.keyboard.press("ArrowRight")
    second = focused(page)
    assert {first.split(",")[0], second.split(",")[0]} <= {*parents} and first != second
    assert "Parent 1 of" not in page.locator(".network-status").text_content()
    page.keyboard.press("ArrowDown")
    assert focused(page).split(",")[0] in alarm.structure.nodes
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent").startswith("Probabilities of")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # Set it in What if
    assert page.evaluate("document.activeElement.tagName") == "SELECT"
    page.keyboard.press("ArrowDown")
    assert "The probability of this evidence is" in page.locator(".evidence").text_content()


def test_keys_and_buttons_zoom_and_the_drawing_can_be_seen_whole(shown):
    page = shown("hundred")
    width = "() => document.querySelector('.network-frame svg').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.locator(".node[tabindex='0']").focus()
    page.keyboard.press("+")
    assert page.evaluate(width) == pytest.approx(1.25 * before, rel=1e-3)
    page.keyboard.press("0")
    frame = page.locator(".network-frame").bounding_box()
    assert page.evaluate(width) <= frame["width"]
    page.get_by_role("button", name="Zoom in").click()
    page.mouse.move(frame["x"] + 50, frame["y"] + 50)
    zoomed = page.evaluate(width)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_function(f"({width})() > {zoomed}")


@pytest.mark.parametrize(("name", "width"), [("alarm", 1200), ("hundred", 1200), ("alarm", 390)])
def test_the_whole_drawing_is_in_its_frame_at_first(shown, name, width):
    page = shown(name, width=width)
    frame, drawing = (page.locator(f".network-frame{end}").bounding_box() for end in ("", " svg"))
    assert frame["x"] <= drawing["x"] and frame["y"] <= drawing["y"]
    assert drawing["x"] + drawing["width"] <= frame["x"] + frame["width"]
    assert drawing["y"] + drawing["height"] <= frame["y"] + frame["height"]


def test_what_is_set_and_changed_comes_first_if_the_reader_asks(shown):
    page = shown("asia")
    names = page.locator("#what-if .look")
    before = names.all_text_contents()
    card(page, "smoke").get_by_role("combobox").select_option(label="yes")
    assert names.all_text_contents() == before
    changed = page.locator(".changes strong").all_text_contents()
    assert changed and "smoke" not in changed and "asia" not in changed
    page.get_by_role("button", name="Sort: set and changed first").click()
    assert names.all_text_contents()[: 1 + len(changed)] == ["smoke", *changed]
    card(page, "dysp").get_by_role("combobox").focus()
    page.keyboard.press("ArrowDown")
    assert names.all_text_contents()[:2] == ["smoke", "dysp"]
    assert focused(page) == "Set dysp"
    page.get_by_role("button", name="Unset smoke").click()
    assert focused(page) == "Set smoke"
    page.get_by_role("button", name="Reset").click()
    assert names.all_text_contents() == before


def test_what_if_shows_the_posteriors_of_predict_proba(shown, alarm):
    page = shown("alarm")
    card(page, "HREKG").get_by_role("combobox").select_option(label="HIGH")
    card(page, "CO").locator("li", has_text="LOW").click()
    expected = alarm.predict_proba(pd.DataFrame({"HREKG": ["HIGH"], "CO": ["LOW"]}), "HR")
    assert posteriors(page, "HR") == percents(expected.to_numpy()[0])
    evidence = page.locator(".evidence").text_content()
    assert "Set: HREKG = HIGH, CO = LOW. The probability of this evidence is" in evidence
    assert "HR is most likely" in evidence
    before = page.locator("#what-if .look").first.text_content()
    assert before == "HR"  # the target
    page.get_by_role("button", name="Reset").click()
    nothing = alarm.predict_proba(pd.DataFrame({"CO": [None]}), "HR")
    assert posteriors(page, "HR") == percents(nothing.to_numpy()[0])


def test_evidence_of_probability_zero_is_said_in_words(shown):
    page = shown("asia")
    card(page, "lung").get_by_role("combobox").select_option(label="yes")
    card(page, "either").get_by_role("combobox").select_option(label="no")
    assert "This evidence has probability zero" in page.locator(".evidence").text_content()
    assert set(posteriors(page, "xray")) == {"–"}
    card(page, "either").get_by_role("combobox").select_option(label="not set")
    assert posteriors(page, "either") == ["100.0%", "0.0%"]


def test_the_network_and_what_if_are_on_one_screen_of_1400_pixels(shown):
    page = shown("alarm", width=1400)
    page.locator(".network-tools").evaluate("(tools) => tools.scrollIntoView()")
    frame, panel = (page.locator(at).bounding_box() for at in (".network-frame", "#what-if"))
    assert frame["x"] + frame["width"] < panel["x"] and panel["x"] + panel["width"] <= 1400
    for box in frame, panel:
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900
    node(page, "BP").click()
    near, panel = card(page, "BP").bounding_box(), page.locator("#what-if").bounding_box()
    assert panel["y"] <= near["y"] and near["y"] + near["height"] <= panel["y"] + panel["height"]
    assert "is-near" in card(page, "BP").get_attribute("class")


def test_set_evidence_marks_the_nodes_by_colour_number_and_words(shown, alarm):
    page = shown("alarm")
    card(page, "HREKG").get_by_role("combobox").select_option(label="HIGH")
    marked = {
        group.get_attribute("aria-label").split(",")[0]: group.locator(".moved").text_content()
        for group in page.locator(".node:has(.moved:not(:empty))").all()
    }
    assert marked.pop("HREKG") == "set"
    given = pd.DataFrame({"HREKG": [None, "HIGH"]}, dtype=object)
    for name in set(alarm.variables) - {"HREKG"}:
        before, after = alarm.predict_proba(given, name).to_numpy()
        change = np.abs(after - before).max()
        assert marked.get(name, "") == (f"±{100 * change:.0f}" if change >= 0.005 else "")
    assert "; set to HIGH" in node(page, "HREKG,").get_attribute("aria-label")
    assert re.search(r"; HIGH: [\d.]+% → [\d.]+%$", node(page, "HR,").get_attribute("aria-label"))
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".moved:not(:empty), .network.has-evidence").count() == 0


def test_the_reader_is_told_what_to_ask_next_and_what_to_check(shown):
    page = shown("alarm")
    page.get_by_text("What to ask next, and what to check").click()
    ask, check = page.locator(".advice ol").all()
    assert re.match(r"HRBP 0\.\d{3} bits", ask.locator("li").first.inner_text())
    assert re.match(r"HR LOW given CATECHOL", check.locator("li").first.inner_text())
    bits = [float(text) for text in re.findall(r"(0\.\d{3}) bits", ask.inner_text())]
    assert len(bits) == 8 and bits == sorted(bits, reverse=True)
    page.get_by_role("button", name="Set HRBP").click()
    assert focused(page) == "Set HRBP"
    page.keyboard.press("ArrowDown")
    assert "HRBP" not in ask.inner_text()
    page.get_by_label("Outcome", exact=True).select_option(label="CO")
    assert "P(CO = " in page.locator(".advice").inner_text()
    page.get_by_role("button", name="Table of CO").click()
    assert page.evaluate("document.activeElement.textContent") == "Probabilities of CO"
    page.get_by_label("Outcome", exact=True).select_option(label="HRBP")
    assert "HRBP is set: choose another outcome" in page.locator(".advice").inner_text()


def test_names_and_states_are_texts_whatever_they_say(shown):
    page = shown("hostile")
    for at in range(4):
        page.locator(f'[data-node="{at}"]').first.focus()
        page.keyboard.press("Enter")
    card(page, "__proto__").get_by_role("combobox").select_option(index=3)
    card(page, "(empty)").get_by_role("combobox").select_option(index=2)
    assert (
        "Set: __proto__ = (empty), (empty) = toString." in page.locator(".evidence").text_content()
    )
    assert page.title() != "harm" and page.locator("main img").count() == 0


def test_a_wide_table_is_filtered_and_turned_page_by_page(shown):
    page = shown("wide")
    node(page, "letter,").click()
    rows = page.locator("#cpt-panel tbody tr")
    assert rows.count() == 25 and "Rows 1 to 25 of 60" in page.locator("#cpt-panel").inner_text()
    page.get_by_role("button", name="Next rows").click()
    page.get_by_role("button", name="Next rows").click()
    assert "Rows 51 to 60 of 60" in page.locator("#cpt-panel").inner_text()
    page.get_by_label("rows", exact=True).select_option(label="7")
    heads = rows.locator("th").all_text_contents()
    assert heads == [text for shade in "abcde" for text in ("7", shade)]
    assert "Show all 26 states" in card(page, "letter").inner_text()


def test_counts_that_the_rule_cut_are_grey_and_marked(shown):
    page = shown("cut")
    for at in range(4):
        page.locator(f'[data-node="{at}"]').first.click()
        if page.locator("#cpt-panel .is-cut").count():
            break
    cut = page.locator("#cpt-panel .is-cut")
    assert set(cut.locator(".count").all_text_contents()) == {"< 10"}
    colours = "(cells) => new Set(cells.map((cell) => getComputedStyle(cell).backgroundColor)).size"
    assert page.locator("#cpt-panel td").evaluate_all(colours) == 2
    assert "fewer than 10 records, or none" in page.locator("#cpt-panel").inner_text()


def test_a_classifier_with_numbers_shows_moments_and_takes_values(shown):
    page = shown("numbers")
    node(page, "age").click()
    heads = page.locator("#cpt-panel thead th").all_text_contents()
    assert heads == ["outcome", "mean", "variance", "standard deviation"]
    before = posteriors(page, "outcome")
    page.get_by_label("Set age").fill("25")
    assert posteriors(page, "outcome") != before
    assert "Set: age = 25. outcome is most likely" in page.locator(".evidence").text_content()


def test_the_page_asks_for_nothing_and_may_not(shown, addresses):
    page = shown("alarm")
    node(page, "HR,").click()
    card(page, "CO").get_by_role("combobox").select_option(label="LOW")
    assert page.asked == [addresses["alarm"]]
    refused = page.evaluate(
        "() => fetch('https://example.org').then(() => 'sent', () => 'refused')"
    )
    assert refused == "refused"
    assert all("Content Security Policy" in text for text in page.said) and page.said
    page.said.clear()
    assert page.evaluate("() => [localStorage.length, document.cookie]") == [0, ""]
