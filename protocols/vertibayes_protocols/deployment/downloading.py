"""A party gets its bundle from the relay: one request of HTTP, through the party's proxy.

Security: who answers needs no proof: what counts is the coordinator's signature, and the digest
that a person compares. So a stranger who answers may say anything: no redirection is followed, the
answer has a size and a time, and no text of it is shown. No error shows a proxy's password.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from concurrent.futures import Future
from http.client import HTTPException
from threading import Thread
from typing import Any, NoReturn, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, build_opener

from vertibayes_protocols.deployment.bundle import MOST
from vertibayes_protocols.deployment.parts import proxy as checked_proxy
from vertibayes_protocols.errors import words
from vertibayes_protocols.transports.route import Route

PATH = "/bundle/"  # of a request to the relay, before the name of a bundle
SECONDS = 60.0  # for all of it
NO_BUNDLE = 404, 426  # what a web server, and the relay, answer to a path that they do not have

T = TypeVar("T")


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: the answer is an error."""


def bundle_at(place: str, proxy: str | None = None) -> bytes:
    """Return the content of the bundle that a relay hands out; `proxy` as in a `Route`."""
    relay, _, name = place.removeprefix("wss://").rpartition("/")
    host, _, path = relay.partition("/")
    url = urlunsplit(("https", host, f"{path}{PATH}{name}", "", ""))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    through = _proxy(Route(f"wss://{host}/", proxy=proxy))
    proxies = ProxyHandler({} if through is None else {"https": through})
    opener = build_opener(proxies, HTTPSHandler(context=context), _NoRedirection)

    def read() -> bytes:
        with opener.open(url, timeout=SECONDS) as answer:
            content: bytes = answer.read(MOST + 1)
            return content

    try:
        content = _within(SECONDS, read)
    except HTTPError as error:
        error.close()
        if error.code not in NO_BUNDLE:
            raise ValueError(
                f"{place}: what answers there is not the relay, or refuses ({error.code}): ask the "
                "relay's operator whether it runs, and what stands before it"
            ) from None
        raise ValueError(
            f"{place}: the relay has no such bundle ({error.code}): the coordinator has made a "
            "newer roster, or the relay's operator has not fetched this one"
        ) from None
    except (OSError, HTTPException) as error:
        _refuse(place, error, through)
    if len(content) > MOST:
        raise ValueError(f"{place}: what is there has more than {MOST:,} bytes: no bundle")
    return content


def _proxy(route: Route) -> str | None:
    """Return the proxy of a route, or of the environment, to which a request can be made."""
    from vertibayes_protocols.transports.line import proxy_of

    found = proxy_of(route)
    if found is not None and not checked_proxy(found).startswith("http://"):
        raise ValueError(
            "`fetch` goes through proxies of http:// alone: take the coordinator's file instead"
        )
    return found


def _within(seconds: float, work: Callable[[], T]) -> T:
    """Return what `work` returns; a TimeoutError if it needs longer, whatever it waits for."""
    found: Future[T] = Future()

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # for who waits
            found.set_exception(error)

    Thread(target=run, daemon=True).start()
    return found.result(seconds)


def _refuse(place: str, error: Exception, proxy: str | None) -> NoReturn:
    reason = error.reason if isinstance(error, URLError) else error
    way = "" if proxy is None else f", by way of the proxy {urlsplit(proxy).hostname}"
    if isinstance(reason, HTTPException):
        raise ValueError(f"{place}: what answers there is no relay of vertibayes{way}") from None
    if isinstance(reason, TimeoutError):
        reason = f"no whole answer within {SECONDS:g} seconds"
    text = words(reason) if isinstance(reason, Exception) else str(reason)
    text = text if text.isprintable() else type(error).__name__
    raise ValueError(f"{place}: the relay cannot be reached ({text}){way}") from None
