"""The bytes that parties send are those recorded in `tests/vectors`, until their version rises."""

import copy
from functools import cache

import pytest

from tests.vectors import make
from tests.vectors.frozen import FOLDER, complaint, differences, read, write
from tests.vectors.messages import message_classes
from vertibayes_mpc.randomness import label
from vertibayes_mpc.rounds import Message
from vertibayes_protocols import wire
from vertibayes_protocols.seal import read_header


@cache
def made(name):
    return make.VECTORS[name]()


@pytest.mark.parametrize("name", make.VECTORS)
def test_the_bytes_are_those_of_the_recorded_version(name):
    wrong = complaint(name, made(name), wire.VERSION)
    assert not wrong, wrong


def test_every_packet_has_the_version_of_the_vectors():
    packets = [bytes.fromhex(vector["packet"]) for vector in made("seal").values()]
    versions = {read_header(packet, "a").version for packet in packets}
    assert {read(name)[0] for name in make.VECTORS} == versions


def test_the_script_writes_the_files_that_are_recorded(tmp_path):
    make.main(tmp_path)
    for name in make.VECTORS:
        file = f"{name}.json"
        assert (tmp_path / file).read_text() == (FOLDER / file).read_text()


def test_the_files_are_small():
    assert sum(file.stat().st_size for file in FOLDER.glob("*.json")) < 150_000


def test_every_kind_has_a_vector_and_a_session_sends_many_of_them():
    assert set(made("wire")["kinds"]) == set(message_classes())
    lines = [line for link in made("session")["messages"].values() for line in link]
    sent = {line.split(": ")[1].split(",")[0] for line in lines}
    assert sent > {"meet", "point", "joining", "columns", "tables", "part", "shuffled", "tags"}


# ---- negative controls ---------------------------------------------------------------------------


def leaves(entry, path=()):
    """Return the paths of all recorded texts."""
    if isinstance(entry, str):
        return [path]
    items = entry.items() if isinstance(entry, dict) else enumerate(entry)
    return [leaf for key, part in items for leaf in leaves(part, (*path, key))]


@pytest.mark.parametrize("name", make.VECTORS)
def test_each_changed_character_is_found(name):
    for *path, last in leaves(made(name)):
        changed = copy.deepcopy(made(name))
        entry = changed
        for key in path:
            entry = entry[key]
        if "fields" in path:
            entry[last] += " renamed"
            assert not list(differences(made(name), changed))
        else:
            entry[last] = entry[last][:-1] + chr(ord(entry[last][-1] if entry[last] else "0") ^ 1)
            assert len(list(differences(made(name), changed))) == 1
        assert complaint(name, changed, wire.VERSION)


class OtherLabel:
    """A stream whose labels are noted; one of them is replaced by another."""

    def __init__(self, key, seen, replaced):
        self.key, self.seen, self.replaced = key, seen, replaced

    def name(self, name):
        self.seen[name] = None
        return label("another", name) if name == self.replaced else name

    def elements(self, ring, name, shape, start=0):
        return self.key.elements(ring, self.name(name), shape, start)

    def permutation(self, name, count):
        return self.key.permutation(self.name(name), count)


@pytest.mark.parametrize(
    ("name", "vectors"),
    [("masked_tables", make.masked_vectors), ("shuffled_tables", make.shuffled_vectors)],
)
def test_another_label_is_found_though_all_parties_use_it_and_the_tables_are_right(name, vectors):
    seen = {}

    def streams(replaced=None):
        return lambda a, b: OtherLabel(make.stream_of(a, b), seen, replaced)

    assert vectors(streams()) == made(name)
    labels = list(seen)
    for replaced in (labels[0], labels[len(labels) // 2], labels[-1]):
        changed = list(differences(made(name), vectors(streams(replaced))))
        assert changed and not [place for place in changed if ", tables, " in place]


def test_another_magic_and_another_kind_are_found(monkeypatch):
    before = made("wire")
    monkeypatch.setattr(wire.envelope, "MAGIC", b"VB9\0")
    for cls in Message.__subclasses__():  # `slots=True` makes a second class: the first may live
        if vars(cls).get("kind") == "roster":
            monkeypatch.setattr(cls, "kind", "renamed roster")
    *envelopes, kind = differences(before, make.wire_vectors())
    assert kind == "kinds, roster: not made any more"
    assert len(envelopes) == 2 and all(place.startswith("envelopes, ") for place in envelopes)


def test_fields_that_change_places_are_found():
    swapped = copy.deepcopy(made("wire"))
    swapped["kinds"]["sum-advertisement"]["fields"][1:3] = ["seal_key", "mask_key"]
    assert list(differences(made("wire"), swapped)) == [
        "kinds, sum-advertisement, fields: mask_key has moved",
        "kinds, sum-advertisement, fields: seal_key has moved",
    ]


# ---- the rules for files -------------------------------------------------------------------------

OLD, NEW = {"a": ["00"], "b": "11"}, {"a": ["01"], "b": "11"}


def test_other_bytes_are_written_only_under_a_higher_version(tmp_path):
    write("small", OLD, 3, tmp_path)
    with pytest.raises(ValueError, match=r"other bytes of version 3: a, entry 0.*Raise VERSION"):
        write("small", NEW, 3, tmp_path)
    assert read("small", tmp_path) == (3, OLD)
    with pytest.raises(ValueError, match=r"small\.json is of version 3.* version 2: raise"):
        write("small", OLD, 2, tmp_path)
    write("small", NEW, 4, tmp_path)
    assert read("small", tmp_path) == (4, NEW)


def test_entries_are_added_under_the_same_version_and_not_removed(tmp_path):
    write("small", OLD, 1, tmp_path)
    more = OLD | {"c": "22"}
    assert "does not record all messages: run python" in complaint("small", more, 1, tmp_path)
    write("small", more, 1, tmp_path)
    assert not complaint("small", more, 1, tmp_path)
    assert "c: not made any more" in complaint("small", OLD, 1, tmp_path)
    with pytest.raises(ValueError, match="c: not made any more"):
        write("small", OLD, 1, tmp_path)


def test_a_complaint_says_what_to_do(tmp_path):
    write("small", OLD, 1, tmp_path)
    assert not complaint("small", OLD, 1, tmp_path)
    assert complaint("small", NEW, 1, tmp_path) == (
        "the bytes of version 1 have changed (small.json): a, entry 0: other bytes. Restore them, "
        "or raise VERSION in vertibayes_protocols.wire and run python -m tests.vectors.make"
    )
    assert complaint("small", NEW, 2, tmp_path) == (
        "small.json is of version 1, the protocols are of version 2: run "
        "python -m tests.vectors.make"
    )
    assert complaint("small", {"a": ["00", "01"], "b": "11"}, 1, tmp_path).startswith(
        "the bytes of version 1 have changed (small.json): a: 2 entries, recorded 1."
    )
