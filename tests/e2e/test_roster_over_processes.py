"""A roster with all parties as processes: a key is rotated, all restart, the old key is refused."""

from pathlib import Path

import pytest

from tests.e2e.processes import free_address
from tests.e2e.test_up import up
from tests.protocols.deployment.parties import change, pooled
from tests.protocols.deployment.rosters import ROLES, advance, consortium, file_of, pin
from vertibayes.bif import write_bif
from vertibayes.counting import PlainCounter
from vertibayes.learning import learn
from vertibayes.options import Options
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.roster.pinning import rotate

pytestmark = [
    pytest.mark.machines,
    pytest.mark.skipif(not Path("/proc").exists(), reason="processes are counted in /proc"),
]


def test_a_rotated_key_works_after_a_restart_and_the_old_one_is_refused_by_name(tmp_path):
    folder, out = consortium(tmp_path / "all", address=free_address()), tmp_path / "out"
    plain = write_bif(learn(PlainCounter(pooled(folder)), Options()).network)
    code, said = up(folder, out)
    assert code == 0, said
    assert (out / "model.bif").read_text() == plain
    north = file_of(folder, "north")
    before, old = north.read_text(), SiteFile.read(north).key

    advance(folder, rotate(north)[0])
    for party in ROLES:
        pin(folder, party, 2)
    assert SiteFile.read(north).key != old
    change(file_of(folder, "analyst"), 'folder = "study"', 'folder = "study2"')
    code, said = up(folder, tmp_path / "again")
    assert code == 0, said
    assert (tmp_path / "again" / "model.bif").read_text() == plain

    north.write_text(before)  # as a thief of the old key, or a site that has not pinned epoch 2
    code, said = up(folder, tmp_path / "stolen")
    assert code == 2 and not (tmp_path / "stolen").exists()
    assert "vertibayes: north: uses a key that was rotated at epoch 2; analyst has pinned" in said
    reason = "north: uses a key that was rotated at epoch 2; south has"
    assert f'analyst=analyst reason="{reason}' in said
    assert "north has pinned epoch 1 of the roster of lungs: compare the epochs" in said
