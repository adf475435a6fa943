"""docs/protection-officer.md: the commands, settings, tests and files that it names exist."""

import dataclasses
import re

import pytest

from tests.documents import ROOT
from tests.e2e.command import run
from tests.test_status import unknown
from vertibayes_protocols.policy import Policy

PAGE = (ROOT / "docs" / "protection-officer.md").read_text()
CODE = re.findall(r"`([^`\n]+)`", PAGE)
COMMANDS = sorted({text for text in CODE if text.startswith("vertibayes ")})


def test_the_page_names_commands_settings_and_tests():
    assert len(COMMANDS) >= 10
    assert sum("::" in text for text in CODE) >= 4


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_and_option_exists(capsys, command):
    program, name, *rest = command.split()
    if name.startswith("-"):
        assert run(capsys, name)[0] == 0
        return
    path = [name, *rest[:1]] if name == "roster" else [name]
    code, told, _ = run(capsys, *path, "--help")
    assert code == 0
    for option in re.findall(r"--[a-z-]+", command):
        assert f"{option} " in told or f"{option}\n" in told, f"{program} {name}: {option}"


def test_each_setting_of_a_policy_exists():
    written = ROOT.joinpath("protocols/vertibayes_protocols/deployment/init/site.toml").read_text()
    known = {field.name for field in dataclasses.fields(Policy)} | set(
        re.findall(r"(?m)^(?:# )?(\w+) =", written)
    )
    named = {
        text.partition(" ")[0] for text in CODE if re.match(r"(most|fewest|exact|free)_", text)
    }
    assert len(named) >= 10 and named <= known


def test_each_test_and_module_exists():
    for text in CODE:
        if "::" in text:
            assert unknown(text) is None, unknown(text)
        elif re.fullmatch(r"(privacy|protocols|e2e)/\w+\.py", text):
            assert (ROOT / "tests" / text).is_file()
        elif re.fullmatch(r"vertibayes_\w+/[\w/]+\.py", text):
            assert (ROOT / text).is_file()
