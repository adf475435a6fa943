"""Who is not whom the others pinned, or not certified, as processes under mutual TLS."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from tests.e2e.processes import LIMIT, Authority, Processes
from tests.protocols.relays import Stranger
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes.structure.learners import k2
from vertibayes_mpc.errors import ProtocolError
from vertibayes_mpc.randomness import KeyPair, SystemRandomness
from vertibayes_protocols.errors import PeerGoneError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.transports.proof import KNOCK

pytestmark = pytest.mark.machines

STRANGER = "site-1"


@pytest.fixture(scope="module")
def federation(tmp_path_factory, alarm_data):
    """Three sites, dealer and relay, certified; and the data of all sites."""
    data = alarm_data.take(list(alarm_data.variables)[:6])
    split, patience = split_columns(data, 3), {"hello": 3.0, "gone": 2.0}
    folder = tmp_path_factory.mktemp("strangers")
    with Processes(folder, split, secure=True, patience=patience) as processes:
        yield processes, data


def restart(processes, **changes):
    processes.running[STRANGER].kill()
    processes.start(STRANGER, **changes)


def refused(processes, error):
    """Begin a session in vain; return the error and how long it took."""
    start = time.monotonic()
    with pytest.raises(error) as caught:
        processes.session()
    return caught.value, time.monotonic() - start


def others_end(processes):
    """Everyone who had joined ends with the stranger's name."""
    for party in {*processes.sites, DEALER} - {STRANGER}:
        processes.running[party].wait_for(f"ended {STRANGER} ")


def works(processes, data):
    """With its own certificate and key it is let in, and the model is that of the pooled data."""
    restart(processes)
    processes.running[STRANGER].wait_for("ready")
    session = processes.session()
    counter = SecureCounter(
        open_study(session, processes.sites, DEALER, order=list(data.variables))
    )
    assert k2(counter) == k2(PlainCounter(data))
    session.close()


def certificate_is_taken(processes, certificates):
    """Whether the relay would let in who shows a certificate, whoever wrote its client."""
    own = certificates._replace(root=processes.certificates["relay"].root)
    relay = SimpleNamespace(address=processes.address)
    with Stranger(relay, own) as stranger:
        return stranger.enter(STRANGER, KNOCK) == ""


def test_a_foreign_certificate_joins_nothing(federation, tmp_path):
    processes, data = federation
    foreign = Authority(tmp_path / "foreign").certificates(STRANGER)
    paths = {**processes.settings["certificates"], STRANGER: list(map(str, foreign))}
    restart(processes, certificates=paths, connect=1.0)
    told = processes.running[STRANGER].wait_for("failed")
    assert "it shows no certificate of this study's relay (unknown authority)" in told
    assert processes.running[STRANGER].process.wait(LIMIT) == 2
    assert not certificate_is_taken(processes, foreign)
    assert certificate_is_taken(processes, processes.certificates[STRANGER])
    error, seconds = refused(processes, PeerGoneError)
    assert error.party == STRANGER and seconds < 10
    others_end(processes)
    works(processes, data)


def test_the_right_certificate_with_another_private_key_is_refused_at_once(federation):
    """The peers pin the old key: the analyst is told by whom, and what to look at."""
    processes, data = federation
    other = KeyPair.generate(SystemRandomness()).private.hex()
    restart(processes, keys={**processes.settings["keys"], STRANGER: other})
    processes.running[STRANGER].wait_for("ready")
    processes.mailbox.patience = processes.mailbox.patience._replace(hello=60.0)  # the default
    error, seconds = refused(processes, ProtocolError)  # its own, or of who was first
    assert error.party == STRANGER and seconds < 10
    assert f"the key of {STRANGER} is not the one pinned at " in str(error)
    others_end(processes)
    processes.running[STRANGER].wait_for(f"refused {ANALYST}: a hello that does not open")
    works(processes, data)
