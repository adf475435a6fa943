import pytest

from vertibayes.report.disclosure import Disclosure
from vertibayes.words import counted, duration, percent, size


def test_numbers_are_written_as_people_do():
    assert [counted(number, "table") for number in (0, 1, 2)] == ["0 tables", "1 table", "2 tables"]
    assert [size(count) for count in (40, 45_678, 1_234_567)] == ["0.0 kB", "45.7 kB", "1.2 MB"]
    assert size(36_280_400_000) == "36.3 GB"
    assert [duration(seconds) for seconds in (99.94, 216.5)] == ["99.9 s", "about 4 min"]


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0.0%"), (2e-4, "under 0.1%"), (1e-3, "0.1%"), (0.25, "25.0%")]
)
def test_a_share_that_is_not_nothing_is_not_written_as_nothing(share, text):
    assert percent(share) == text


def test_records_that_are_alone_are_one_number():
    one, two = Disclosure(1, 1, 1, 1 / 5000, exact=True), Disclosure(2, 3, 2, 0.5)
    alone = "alone in a revealed cell: mend"
    assert one.sentence("mend") == f"1 of 5,000 records (under 0.1%) is {alone}"
    assert two.sentence("mend") == f"at least 2 of 4 records (50.0%) are {alone}"
