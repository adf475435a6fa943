"""How long parties wait, and how long a run that breaks is begun again, as their files say."""

import pytest

from tests.protocols.deployment.parties import change, deployment
from vertibayes_protocols.deployment.files import DealerFile, SiteFile, StudyFile
from vertibayes_protocols.settings import parse_seconds
from vertibayes_protocols.transports.mailbox import Patience

FILES = {
    "north/site.toml": SiteFile,
    "dealer/dealer.toml": DealerFile,
    "analyst/study.toml": StudyFile,
}


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all")


@pytest.mark.parametrize("name", FILES)
def test_a_party_waits_as_its_file_says(folder, name):
    path, kind = folder / name, FILES[name]
    assert kind.read(path).waits == Patience()
    change(path, "# [patience]", "[patience]")
    change(path, "# silent = 600", 'silent = "20 min"')
    change(path, "# gone = 10", "gone = 30")
    assert kind.read(path).waits == Patience(silent=1200.0, gone=30.0)


def test_a_run_is_begun_again_as_the_study_says(folder):
    path = folder / "analyst" / "study.toml"
    assert StudyFile.read(path).patience == 600.0
    change(path, "# [run]", "[run]")
    change(path, '# patience = "10 min"', 'patience = "1 h"')
    assert StudyFile.read(path).patience == 3600.0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[patience]\ngone = 0", "gone: must be a span of time"),
        ('[patience]\nhello = "soon"', "hello: 'soon' is not a span of time"),
        ("[patience]\nprobe = 20", "probe: must be at most gone, 10 seconds, got 20"),
        ("[patience]\nwait = 2", "wait: unknown key; expected one of silent, gone, probe, hello"),
        ("[run]\npatience = -1", "patience: must be a span of time"),
        ("[run]\nretries = 3", "retries: unknown key; expected one of patience"),
    ],
)
def test_mistakes_are_named_with_file_line_and_key(folder, line, reason):
    path = folder / "analyst" / "study.toml"
    path.write_text(path.read_text() + "\n" + line + "\n")
    with pytest.raises(ValueError, match=r"study.toml, line \d+: ") as caught:
        StudyFile.read(path)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90 s", 90), ("10 min", 600), ("1.5h", 5400), ("0", 0)]
)
def test_spans_of_time_have_units(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "min", "10 minutes or so", "-1 s", "1 d", "1e3"])
def test_what_is_no_span_of_time_is_refused(text):
    with pytest.raises(ValueError, match="expected a number and a unit"):
        parse_seconds(text)
