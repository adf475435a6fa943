"""The page of a run: HTML with its style and its script, which asks for the view every second."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from vertibayes.report.live.view import View

POLICY = (
    "default-src 'none'; connect-src 'self'; img-src data:; style-src 'nonce-{nonce}'; "
    "script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_of(view: View, nonce: str, proof: str) -> str:
    """Return the page that shows a run.

    Parameters
    ----------
    view : View
        What it shows first.
    nonce : str
        A random text, by which the browser knows the page's own style and script.
    proof : str
        A random text, by which the script knows the answers of the page's own server.
    """
    assets = files(__package__) / "assets"
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("run.css", "run.js"))
    template = _environment().get_template("run.html.j2")
    return template.render(view=view, nonce=nonce, proof=proof, style=style, script=script)


def policy_of(nonce: str) -> str:
    """Return the content security policy of the page with this nonce."""
    return POLICY.format(nonce=nonce)


@cache
def _environment() -> Environment:
    loader = PackageLoader(__package__ or "", "templates")
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
