"""One organization of a collaboration as a process: ``one_node.py FOLDER STUDY MINUTES``.

The mock network runs organizations one after the other, and a site works for as long as its study.
Therefore each organization has a mock network of its own.
"""

import json
import sys

from vantage6.algorithm.mock import MockNetwork

folder, study, minutes = sys.argv[1:]
network = MockNetwork("vertibayes_vantage6", [{"site": {"database": folder, "db_type": "folder"}}])
client = network.user_client
client.dataframe.create(
    label="site", method="site", arguments={"study": study, "minutes": float(minutes)},
    name="site", image="", session=1,
)  # fmt: skip
task = client.task.create(
    method="overview", organizations=[1], databases=[{"type": "dataframe", "dataframe_id": 1}]
)
sys.stdout.write("result " + json.dumps(client.result.from_task(task["id"])) + "\n")
