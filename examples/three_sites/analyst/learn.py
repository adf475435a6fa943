"""Run the analyst's part from Python, in place of run.sh, with any learner.

cd FOLDER/analyst && python learn.py
"""

from __future__ import annotations

from vertibayes import connect_study, fit_cpts, k2

with connect_study("study.toml") as counter:
    structure = k2(counter, max_parents=2)
    network = fit_cpts(counter, structure, pseudo_count=0.5)
    calls = counter.calls
model = network.to_pgmpy()
print(f"{counter.records} records, edges {list(structure.edges)}; {calls} calls")
