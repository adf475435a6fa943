"""What an approval carries, what a site's owner never approves, and what `approve` warns of."""

import json
from contextlib import closing

import pytest

from tests.e2e.command import Typed, run
from tests.e2e.test_approve import approve, digest_of, study_of
from tests.protocols.deployment.parties import change, deployment
from tests.randomness import SeededRandomness
from vertibayes.cli.texts import look_alike
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.budget import Cost, Released
from vertibayes_protocols.deployment.approvals import path_of, read_approval
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.runs_together import Alarm, Last

TODAY = "2026-03-01"


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all", free=False)


@pytest.fixture(autouse=True)
def day(monkeypatch):
    """Have the same day everywhere, until a test sets another."""
    days = [TODAY]
    monkeypatch.setattr("vertibayes.cli.approve.today", lambda: days[-1])
    monkeypatch.setattr("vertibayes_protocols.approval.today", lambda: days[-1])
    return days


def own_of(folder):
    return SiteFile.read(folder / "north" / "site.toml")


def approval_of(folder):
    return read_approval(path_of(own_of(folder).approved, digest_of(folder)))


def memory_of(folder):
    own = own_of(folder)
    own.folder.mkdir(exist_ok=True)
    return closing(SiteMemory(own.memory))


def list_of(capsys, folder):
    return run(capsys, "approve", "--list", "--site", folder / "north" / "site.toml")[1]


# ---- purpose, last day, version of the data ------------------------------------------------------


def test_an_approval_has_a_purpose_a_last_day_and_the_version_of_the_data(capsys, folder):
    options = "--yes", "--by", "A. Owner", "--purpose", "permit 12/345", "--until", "2026-12-31"
    code, shown, error = approve(capsys, folder, *options)
    assert code == 0, error
    approval = approval_of(folder)
    assert approval[4:6] == ("permit 12/345", "2026-12-31") and len(approval.version) == 8
    assert "Purpose: permit 12/345\n" in shown
    assert "The approval ends on 2026-12-31, in UTC\n" in shown
    assert f"  data: version {approval.version}, of the number of records" in shown
    listed = list_of(capsys, folder)
    assert "A. Owner on 2026-03-01 until 2026-12-31 for permit 12/345; 5 variables" in listed
    assert f"data {approval.version}" in listed and "ended" not in listed


def test_an_approval_without_them_has_none_of_them(capsys, folder):
    shown = approve(capsys, folder, "--yes", "--by", "A. Owner")[1]
    assert "Purpose" not in shown and "approval ends" not in shown
    content = path_of(own_of(folder).approved, digest_of(folder)).read_text()
    assert set(json.loads(content)) == {"format", "approver", "date", "version", "contract"}
    assert "approved by A. Owner on 2026-03-01; 5 variables" in list_of(capsys, folder)


def test_approved_again_it_keeps_what_is_not_given_and_changes_what_is(capsys, folder):
    approve(capsys, folder, "--yes", "--purpose", "a permit", "--until", "2026-12-31")
    assert "nothing is changed" in approve(capsys, folder, "--yes", "--until", "2026-12-31")[1]
    assert "Approved: " in approve(capsys, folder, "--yes", "--until", "2026-06-30")[1]
    assert approval_of(folder)[4:6] == ("a permit", "2026-06-30")


@pytest.mark.parametrize(
    ("day", "reason"),
    [
        ("2026-02-28", "the approval would have ended on 2026-02-28; specify a later day"),
        ("2026-02-30", "day is out of range"),
        ("tomorrow", "a day must be written as 2026-01-31, got 'tomorrow'"),
        ("20261231", "a day must be written as"),
        ("２０２６-12-31", "a day must be written as"),
    ],
)
def test_a_last_day_that_is_past_or_none_is_refused(capsys, folder, day, reason):
    code, _, error = approve(capsys, folder, "--yes", "--until", day)
    assert code == 2 and f"--until: {reason}" in error
    assert not (folder / "north" / "memory" / "approved").exists()


def test_an_approval_that_has_ended_is_listed_as_such_and_needs_another_day(capsys, folder, day):
    assert approve(capsys, folder, "--yes", "--until", TODAY)[0] == 0
    assert "(ended)" not in list_of(capsys, folder)
    day.append("2026-03-02")
    assert "until 2026-03-01 (ended)" in list_of(capsys, folder)
    code, _, error = approve(capsys, folder, "--yes")
    assert code == 2 and "ended on 2026-03-01; specify a later day" in error
    assert approve(capsys, folder, "--yes", "--until", "2026-04-01")[0] == 0


def test_a_blank_purpose_is_refused(capsys, folder):
    code, _, error = approve(capsys, folder, "--yes", "--purpose", " ")
    assert code == 2 and "--purpose must be a text that is not empty" in error


@pytest.mark.parametrize(
    ("key", "value"), [("until", "soon"), ("until", 3), ("purpose", []), ("version", None)]
)
def test_an_approval_with_other_things_in_their_place_is_refused(capsys, folder, key, value):
    approve(capsys, folder, "--yes", "--until", "2026-12-31")
    path = path_of(own_of(folder).approved, digest_of(folder))
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ValueError, match="not a valid approval"):
        read_approval(path)
    assert "Approved: " in approve(capsys, folder, "--yes")[1], "and it can be approved again"


def test_an_approval_of_an_older_release_is_of_any_version_of_the_data(capsys, folder):
    approve(capsys, folder, "--yes")
    path = path_of(own_of(folder).approved, digest_of(folder))
    content = json.loads(path.read_text())
    del content["version"]
    path.write_text(json.dumps(content))
    assert "data of any version" in list_of(capsys, folder)
    assert read_approval(path).approved().version == ""


def test_more_records_or_other_states_are_another_version(capsys, folder):
    approve(capsys, folder, "--yes")
    first, records = approval_of(folder).version, own_of(folder).data.place
    lines = records.read_text().splitlines()
    records.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert "nothing is changed" in approve(capsys, folder, "--yes")[1], "the order is no matter"
    records.write_text("\n".join([*lines, lines[-1].replace("patient", "person")]) + "\n")
    shown = approve(capsys, folder, "--yes")[1]
    second = approval_of(folder).version
    assert second != first and f"{second}, of the number of records" in shown
    assert f"the version approved before was {first}" in shown
    change(folder / "north" / "site.toml", "age = { cut = [30, 50, 70] }", "age = { cut = [50] }")
    approve(capsys, folder, "--yes")
    assert approval_of(folder).version not in (first, second)


# ---- what an owner never approves ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "release", "key", "reason"),
    [
        ('rules = ["laplace"]', {}, "rule", "its policy allows rules laplace"),
        ("least_fewest = 11", {}, "fewest", "none below least_fewest = 11"),
        ("least_fewest = 2", {"rule": '"exact"'}, "rule", "releases numbers from 1 on"),
        ("most_runs = 4", {"runs": "5"}, "runs", "the study has 5 runs: its policy allows"),
        (
            "most_epsilon_of_a_study = 2.9",
            {"runs": "3", "rule": '"laplace"'},
            "epsilon",
            "the runs of the study have epsilon 3 together",
        ),
    ],
)
def test_a_study_beyond_a_floor_is_refused_by_file_and_key(
    capsys, folder, policy, release, key, reason
):
    text = study_of(folder).read_text()
    head, tail = text.split("\n[release]", 1)
    for name, value in release.items():
        line = next(line for line in tail.splitlines() if line.startswith(f"{name} = "))
        tail = tail.replace(line, f"{name} = {value}", 1)
    study_of(folder).write_text(f"{head}\n[release]{tail}")
    assert "--digest is not that of" in approve(capsys, folder, "--digest", "00" * 32)[2]  # control
    change(folder / "north" / "site.toml", "[policy]", f"[policy]\n{policy}")
    code, _, error = approve(capsys, folder, "--yes")
    assert code == 2 and f"release.{key}: north refuses: " in error and reason in error, error
    assert "study.toml, line " in error or key == "epsilon"
    assert not (folder / "north" / "memory" / "approved").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rules = []", None),
        (
            'rules = ["cut", "none"]',
            "rules: must be a list of exact, cut, rounded, laplace or gaussian",
        ),
        ("least_fewest = 0", "least_fewest: must be a whole number, at least 1"),
        ("most_epsilon_of_a_study = 0", "most_epsilon_of_a_study: must be a number, above 0"),
        ("noise_alone = 1", "noise_alone: must be true or false"),
    ],
)
def test_floors_are_read_as_other_settings_are(capsys, folder, line, reason):
    change(folder / "north" / "site.toml", "[policy]", f"[policy]\n{line}")
    if reason is None:
        assert own_of(folder).policy.rules == ()
        return
    with pytest.raises(ValueError, match=rf"site\.toml, line \d+: policy\.{reason}"):
        own_of(folder)


# ---- with and without noise ----------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["cut", "laplace"])
def test_what_epsilon_does_not_bound_is_said_and_can_be_forbidden(capsys, folder, rule):
    change(study_of(folder), 'rule = "cut"', f'rule = "{rule}"')
    with memory_of(folder) as memory:
        memory._save(memory._file)
    said = "epsilon does not bound it" if rule == "cut" else "7 tables, sums or scores have left"
    own = folder / "north" / "site.toml"
    change(own, "[policy]", "[policy]\nnoise_alone = true")
    code, shown, error = approve(capsys, folder, "--yes")
    assert code == 0 and said not in shown, error  # the control: nothing of the other kind has left
    with memory_of(folder) as memory:
        memory.spent = Cost.of(0.25) if rule == "cut" else Cost()
        memory.plain, memory.released_freely = (
            (0, Released()) if rule == "cut" else (4, Released(3))
        )
        memory._save(memory._file)
    code, _, error = approve(capsys, folder, "--yes")
    assert code == 2 and "release.rule: north refuses: results" in error and "noise_alone" in error
    change(own, "noise_alone = true", "")
    shown = approve(capsys, folder, "--yes")[1]
    assert said in shown


# ---- warnings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fewest", "warned"), [(2, True), (9, True), (10, False), (20, False)])
def test_a_smaller_fewest_than_the_fewest_records_of_the_site_is_a_risk(
    capsys, folder, fewest, warned
):
    change(study_of(folder), "\nfewest = 10 ", f"\nfewest = {fewest} ")
    shown = approve(capsys, folder, "--yes")[1]
    words = f"- this site has fewest_records = 10, and the study shows groups of {fewest} people"
    assert (words in shown) == warned


def test_a_variable_from_which_all_others_hang_is_a_risk(capsys, folder):
    names, file = ["age", "sex", "pulse", "drug", "outcome"], folder / "analyst" / "order.json"
    change(study_of(folder), "max_parents = 3", 'max_parents = 3\nstructure = "order.json"')
    change(study_of(folder), 'algorithm = "k2"', "")
    risk = "- all other variables hang from drug: the fewer people have a value of drug"

    def shown(*edges):
        file.write_text(json.dumps({"nodes": names, "edges": edges}))
        return approve(capsys, folder, "--yes")[1]

    all_ = [["drug", name] for name in names if name != "drug"]
    assert risk in shown(*all_) and risk in shown(*all_, ["age", "sex"])
    assert "hang from" not in shown(*all_[1:])  # the control
    change(study_of(folder), 'rule = "cut"', 'rule = "laplace"')
    assert "hang from" not in shown(*all_)


def test_the_class_of_tan_is_such_a_variable(capsys, folder):
    assert "hang from" not in approve(capsys, folder, "--yes")[1]  # the control: k2
    change(study_of(folder), 'algorithm = "k2"', 'algorithm = "tan"\nclass_variable = "sex"')
    change(study_of(folder), "max_parents = 3", "")
    _, shown, error = approve(capsys, folder, "--yes")
    assert not error and "- all other variables hang from sex: " in shown


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["age", "\u0430ge"], [["age", "\u0430ge (\\u0430ge)"]]),  # Cyrillic
        (["x10", "xlO", "xI0"], [["x10", "xlO", "xI0"]]),
        (["farm", "farrn"], [["farm", "farrn"]]),
        (["PH", "\u03a1\u041d"], [["PH", "\u03a1\u041d (\\u03a1\\u041d)"]]),  # Greek and Cyrillic
        (["a b", "a\u200bb", "ab"], [["a b", "a\u200bb (a\\u200bb)", "ab"]]),
        (["caf\u00e9", "cafe\u0301"], [["caf\u00e9 (caf\\xe9)", "cafe\u0301 (cafe\\u0301)"]]),
        (["age", "Age", "ages", "sage", "x1", "x2"], [["age", "Age"]]),
        (["age", "age"], []),
    ],
)
def test_names_that_look_alike_are_grouped(names, groups):
    assert look_alike(names) == groups


def test_names_that_look_alike_are_marked(capsys, folder):
    """A variable of the study, and a party that the site pins."""
    own, key = (
        folder / "north" / "site.toml",
        encode_public(KeyPair.generate(SeededRandomness()).public),
    )
    assert "look alike" not in approve(capsys, folder, "--digest", "00" * 32)[1]
    change(own, 'south = "', f's0uth = "{key}"\nsouth = "')
    change(study_of(folder), '"age", "sex"', '"\u0430ge", "age", "sex"')
    _, shown, error = approve(capsys, folder, "--yes")
    assert not error
    assert "These names look alike, and are not the same: \u0430ge (\\u0430ge), age\n" in shown
    assert "not the same: south, s0uth\n" in shown


@pytest.mark.parametrize("typed", ["first eight", "spaced", "more"])
def test_eight_digits_do_not_approve_and_a_space_between_sixteen_does_no_harm(
    capsys, folder, monkeypatch, typed
):
    digest = digest_of(folder).hex()
    answers = {"first eight": digest[:8], "spaced": f"{digest[:8]} {digest[8:16].upper()}"}
    monkeypatch.setattr("sys.stdin", Typed(answers.get(typed, digest[:20]) + "\n"))
    assert (approve(capsys, folder)[0] == 0) == (typed == "spaced")


# ---- an older memory -----------------------------------------------------------------------------


def test_an_older_memory_is_listed_and_accepted_by_the_owner(capsys, folder):
    own = own_of(folder)
    before, newest = Last(), Last("cd" * 32, 4, 739000, own.pinned["south"].hex())
    alarm, lost = Alarm("ab" * 32, "it has forgotten 2 sessions"), Alarm("cd" * 32, "south has")
    accepting = "meets", own.source.path, "--older-memory"
    code, _, error = run(capsys, *accepting, "south")
    assert code == 2 and "with which something was forgotten (no site), got 'south'" in error
    with memory_of(folder) as memory:
        assert not memory.together.check_own("south", alarm, is_known=False)
        memory.together.see("south", before, newest)
        assert not memory.together.check_peer("south", lost, is_known=False)
        assert not memory.together.check_peer("east", lost._replace(head="ef"), is_known=False)
    listed = run(capsys, "meets", own.source.path)[1]
    assert "north refuses south: it has forgotten 2 sessions; south has (`--older-m" in listed
    code, _, error = run(capsys, *accepting, "west")
    assert code == 2 and "was forgotten (east, south), got 'west'" in error
    code, shown, _ = run(capsys, *accepting, "south")
    assert code == 0 and "reads values of this person" in shown and "Accepted" in shown
    assert "south: it has forgotten 2 sessions\n" in shown and "east" not in shown
    with memory_of(folder) as memory:
        memory.together.take_accepted()
        assert memory.together.last("south").head == ""
        assert memory.together.check_own("south", alarm, is_known=False)
    listed = run(capsys, "meets", own.source.path)[1]
    assert "refuses south" not in listed and "north refuses east" in listed, "one peer alone"


@pytest.mark.parametrize(
    ("policy", "rule", "reason"),
    [
        ("most_epsilon = 0.5", '"laplace"', "release.rule: north refuses: the release costs eps"),
        ("dishonest = 0.5", '"laplace"\ndishonest = 0.0', "release.rule: north refuses: the terms"),
        ("fewest_records = 9999", '"rounded"', "records: its policy has fewest_records = 9999"),
    ],
)
def test_what_its_run_would_refuse_after_the_winners_is_not_approved(
    capsys, folder, policy, rule, reason
):
    change(study_of(folder), 'rule = "cut"', f"rule = {rule}")
    assert "--digest is not that of" in approve(capsys, folder, "--digest", "00" * 32)[2]  # control
    site = folder / "north" / "site.toml"
    name = policy.partition(" ")[0]
    lines = [line for line in site.read_text().splitlines() if not line.startswith(f"{name} = ")]
    site.write_text("\n".join(lines).replace("[policy]", f"[policy]\n{policy}") + "\n")
    code, _, error = approve(capsys, folder, "--yes")
    assert code == 2 and reason in error, error
    assert not (folder / "north" / "memory" / "approved").exists()


@pytest.mark.parametrize(("rule", "refused"), [("cut", True), ("rounded", False)])
def test_a_cut_of_a_state_of_three_people_is_not_approved(capsys, folder, rule, refused):
    site, records = folder / "north" / "site.toml", own_of(folder).data.place
    change(site, '# rare_states = "merge"', 'rare_states = "keep" #')
    change(study_of(folder), 'rule = "cut"', f'rule = "{rule}"')
    head, *rows = records.read_text().splitlines()
    place = head.split(",").index("sex")
    cells = [row.split(",") for row in rows]
    for row in cells[:3]:
        row[place] = "x"
    records.write_text("\n".join([head, *map(",".join, cells)]) + "\n")
    code, _, error = approve(capsys, folder, "--yes")
    assert (code == 2) == refused
    assert ("sex: 'x' (3): fewer than 10 people have a state" in error) == refused
