"""The algorithm in vantage6's mock network, alone and with all parties of a study as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b32encode
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

import pandas as pd
import pytest
import vertibayes_vantage6
from vantage6.algorithm.mock import MockNetwork
from vantage6.common.algorithm_function import is_vantage6_algorithm_func
from vantage6.common.globals import ENV_VAR_EQUALS_REPLACEMENT

from tests.e2e.processes import free_address
from tests.protocols.deployment.parties import SITES, deployment
from vertibayes.cli.contracts import contract_of
from vertibayes.cli.hosted import hosted
from vertibayes.cli.up import approve_for_practice, party_files
from vertibayes_protocols.deployment.files import StudyFile

HERE = Path(__file__).parent
FRAME = "site"  # the mock network finds a data frame only under the label of its database


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all", address=free_address(), free=False)


def approved(folder):
    path = folder / "analyst" / "study.toml"
    file = StudyFile.read(path)
    approve_for_practice(file, party_files(path, file), quiet=True)
    return contract_of(file).digest.hex()


def extracted(folder, method="site", **arguments):
    """Run a function beside the data of two nodes; return the rows that stay there."""
    databases = [
        {"site": {"database": str(folder / site), "db_type": "folder"}} for site in SITES[:2]
    ]
    network = MockNetwork("vertibayes_vantage6", databases)
    network.user_client.dataframe.create(
        label="site", method=method, arguments=arguments, name=FRAME, image="", session=1
    )
    return network, [node.dataframes[FRAME].iloc[0].to_dict() for node in network.nodes]


def test_each_function_has_its_kind_of_task():
    kinds = {
        name: getattr(vertibayes_vantage6, name).vantage6_decorator_step_type.value
        for name in vertibayes_vantage6.__all__
    }
    assert kinds == {
        "site": "data_extraction", "status": "data_extraction",
        "report": "federated_compute", "overview": "central_compute",
    }  # fmt: skip
    public = [name for name, value in vars(vertibayes_vantage6).items()
              if callable(value) and is_vantage6_algorithm_func(value)]  # fmt: skip
    assert sorted(public) == sorted(kinds), "a task cannot call anything else"


def test_a_study_that_is_not_approved_starts_nothing_and_the_task_does_not_fail(folder):
    _, rows = extracted(folder, study="ab" * 32)
    assert {row["state"] for row in rows} == {"refused"}
    assert all("not approved here" in row["reason"] for row in rows)
    assert not any((folder / site / "site.log").exists() for site in SITES)


@pytest.mark.parametrize("argument", ["file", "path", "policy", "connection_details", "uri"])
def test_a_task_cannot_give_any_other_argument(folder, argument):
    """Not a path, a key or a policy: they are in the site's folder alone."""
    with pytest.raises(SystemExit):
        extracted(folder, study=approved(folder), **{argument: "/etc"})
    assert not any((folder / site / "site.log").exists() for site in SITES)


def test_a_database_without_a_site_is_refused(folder):
    _, rows = extracted(folder.parent, study="ab" * 32)
    assert all("the database has no site.toml" in row["reason"] for row in rows)


def test_the_status_is_read_and_nothing_is_written(folder):
    study = approved(folder)
    before = sorted(path for path in folder.rglob("*"))
    _, rows = extracted(folder, method="status", study=study)
    assert [row["state"] for row in rows] == ["not running"] * 2
    assert sorted(path for path in folder.rglob("*")) == before


def test_the_overview_collects_reports_and_refuses_other_data_frames(folder):
    network, _ = extracted(folder, method="status", study=approved(folder))
    client = network.user_client
    frame = [{"type": "dataframe", "dataframe_id": 1}]
    task = client.task.create(method="overview", organizations=[1], databases=frame)
    (reports,) = client.result.from_task(task["id"])
    assert [report["party"] for report in reports] == list(SITES[:2])
    for node in network.nodes:
        node.dataframes[FRAME] = pd.DataFrame({"patient": ["patient-00001"]})
    with pytest.raises(SystemExit):
        client.task.create(method="report", organizations=[1], databases=frame)


def test_the_parties_of_a_study_learn_while_three_nodes_run_their_sites(folder, tmp_path):
    """Relay and dealer as services; each site in a task of its own organization's node."""
    study, out = approved(folder), tmp_path / "out"
    with ExitStack() as running:
        running.enter_context(hosted("relay", folder / "relay" / "relay.toml"))
        running.enter_context(hosted("dealer", folder / "dealer" / "dealer.toml"))
        nodes = [running.enter_context(node_of(folder / site, study)) for site in SITES]
        logs = [folder / site / "site.log" for site in SITES]
        wait_until(lambda: all(p.exists() and " connected " in p.read_text() for p in logs))
        learn = [sys.executable, "-m", "vertibayes", "learn", str(folder / "analyst/study.toml")]
        done = subprocess.run([*learn, "--out", str(out)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said = [node.communicate(timeout=60)[0] for node in nodes]
    assert (out / "release").is_dir()
    for site, text in zip(SITES, said, strict=True):
        line = next(line for line in text.splitlines() if line.startswith("result "))
        ((report,),) = json.loads(line.removeprefix("result "))
        assert (report["party"], report["state"], report["runs"]) == (site, "released", 1)
        assert report["tables"] == 5
        assert "patient-" not in text and "records" not in text, "the log stays at the site"


def test_a_killed_task_ends_the_process_of_its_site(folder):
    """Kubernetes sends SIGTERM to the first process of the container."""
    study, log = approved(folder), folder / "north" / "site.log"
    with (
        hosted("relay", folder / "relay" / "relay.toml"),
        node_of(folder / "north", study) as node,
    ):
        wait_until(lambda: log.exists() and " connected " in log.read_text())
        node.terminate()
        said = node.communicate(timeout=30)[0]
    assert '"state": "stopped"' in said
    assert log.read_text().splitlines()[-1].endswith("north stopped")


def node_of(folder, study):
    command = [sys.executable, str(HERE / "one_node.py"), str(folder), study, "2"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_until(condition, seconds=60):
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end
        sleep(0.1)


def test_the_entry_point_of_the_container_writes_the_table_and_says_the_state_alone(
    folder, tmp_path
):
    """The node encodes environment variables in base32, and passes arguments as JSON."""
    given, result = tmp_path / "input", tmp_path / "output"
    variables = {
        "INPUT_FILE": given, "OUTPUT_FILE": result, "ALGORITHM_METHOD": "status",
        "FUNCTION_ACTION": "data_extraction", "DATABASE_URI": folder / "north",
        "DATABASE_TYPE": "folder",
    }  # fmt: skip
    given.write_text(json.dumps({"study": approved(folder)}))
    encoded = {
        name: b32encode(str(value).encode()).decode().replace("=", ENV_VAR_EQUALS_REPLACEMENT)
        for name, value in variables.items()
    }
    code = "from vantage6.algorithm.tools.wrap import wrap_algorithm; wrap_algorithm(False)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, **encoded, "PKG_NAME": "vertibayes_vantage6"},
    )  # fmt: skip
    assert pd.read_parquet(result).loc[0, "state"] == "not running"
    assert "info > not running" in done.stdout and "records" not in done.stdout
