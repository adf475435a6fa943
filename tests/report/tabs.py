"""Where the parts of a page are, in a tab of a browser."""

import re


def node(page, name):
    return page.locator(f'.node[aria-label^="{name}"]')


def card(page, name):
    title = page.locator(".look", has_text=re.compile(f"^{re.escape(name)}$"))
    return page.locator("#what-if .card", has=title)


def posteriors(page, name):
    """Return the numbers beside the bars of a card."""
    return card(page, name).locator(".number").all_text_contents()


def percents(shares):
    return [f"{100 * share:.1f}%" for share in shares]


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label')")
