"""The page of a run: HTML with its style and its script, which asks for the view every second."""

from __future__ import annotations

from functools import cache

from jinja2 import Template

from vertibayes.report.html import assets, page_style, templates
from vertibayes.report.live.view import View

PACKAGE = "vertibayes.report.live"
POLICY = (
    "default-src 'none'; connect-src 'self'; img-src data:; style-src 'nonce-{nonce}'; "
    "script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_of(view: View, nonce: str, proof: str) -> str:
    """Return the page that shows a run."""
    style = "\n".join([page_style(), *assets(PACKAGE, ".css")])
    (script,) = assets(PACKAGE, ".js")
    return _template().render(view=view, nonce=nonce, proof=proof, style=style, script=script)


def policy_of(nonce: str) -> str:
    """Return the content security policy of the page with this nonce."""
    return POLICY.format(nonce=nonce)


@cache
def _template() -> Template:
    return templates(PACKAGE).get_template("run.html.j2")
