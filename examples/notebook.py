# %% [markdown]
# # From a data frame to a report
#
# This notebook learns a Bayesian network of columns that lie at two sites, looks at it, validates
# it, asks it questions, releases it with a cut, and writes a report. All people are invented.
#
# It is a script in percent format. Run it with `python examples/notebook.py`, or open it in an
# editor that knows `# %%` cells, or in Jupyter with Jupytext. It writes into the folder `notebook`.

# %%
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from vertibayes import (
    Options,
    Rule,
    SecretChooser,
    SecureCounter,
    SiteData,
    federate,
    fit_cpts,
    learn_released,
    learn_structure,
    open_study,
)
from vertibayes.report.page.render import write_report
from vertibayes.validation import scv
from vertibayes_protocols.site.encoding import Encoding

FOLDER = Path("notebook")
FOLDER.mkdir()

# %% [markdown]
# ## A data frame
#
# Pressure rises with age, infarcts follow from smoking and from pressure, and smokers cough. Some
# ages are 999, some smokers are written YES, and some values are missing.

# %%
draw = np.random.default_rng(7)
PEOPLE = 2000
age = draw.integers(20, 91, PEOPLE)
smokes = draw.random(PEOPLE) < 0.3
pressure = np.round(draw.normal(105 + 0.5 * age, 12))
coughs = draw.random(PEOPLE) < np.where(smokes, 0.6, 0.15)
infarct = draw.random(PEOPLE) < 0.03 + 0.25 * smokes + 0.35 * (pressure > 145)
people = pd.DataFrame(
    {
        "patient": [f"P{number}" for number in range(PEOPLE)],
        "age": np.where(draw.random(PEOPLE) < 0.02, 999, age),
        "smoker": np.where(smokes, np.where(draw.random(PEOPLE) < 0.9, "yes", "YES"), "no"),
        "cough": np.where(coughs, "yes", "no"),
        "pressure": np.where(draw.random(PEOPLE) < 0.05, np.nan, pressure),
        "infarct": np.where(infarct, "yes", "no"),
    }
)
clinic = people[["patient", "age", "smoker", "cough"]]
hospital = people[["patient", "pressure", "infarct"]]
people.head()

# %% [markdown]
# ## What is wrong with it
#
# Each site examines its own columns. A finding names the option that corrects the column.

# %%
first = SiteData.from_frame(clinic, site="clinic", ids="patient")
print(first.report.message())

# %% [markdown]
# Edges that are declared reveal nothing of the records. The sites compare their lists of people by
# `patient`, without showing them, and stop if the lists differ.

# %%
sites = {
    "clinic": SiteData.from_frame(
        clinic,
        Encoding(
            missing_codes=["age=999"],
            ignore_case=["smoker"],
            cuts={"age": [Decimal(40), Decimal(60), Decimal(75)]},
        ),
        site="clinic",
        ids="patient",
    ),
    "hospital": SiteData.from_frame(
        hospital,
        Encoding(cuts={"pressure": [Decimal(120), Decimal(130), Decimal(140), Decimal(150)]}),
        site="hospital",
        ids="patient",
    ),
}

# %% [markdown]
# ## Learn
#
# All parties run in this process. The counter reveals exact tables, and its ledger lists them.

# %%
with federate(sites) as federation:
    counter = SecureCounter.of(federation)
    structure = learn_structure(counter)
    network = fit_cpts(counter, structure)
    validation = scv(counter, structure, "infarct")
print("edges:", *(f"{parent} -> {child}" for parent, child in network.structure.edges))
print(f"revealed: {len(counter.ledger.tables)} tables, {counter.ledger.cells} cells")

# %% [markdown]
# ## Look at the network
#
# The drawing of a network is SVG. A notebook displays it if the last line of a cell is `network`.

# %%
(FOLDER / "network.svg").write_text(network._repr_svg_(), encoding="utf-8")

# %% [markdown]
# A CPT has a column for each combination of the parents' states.

# %%
for name, parents in network.structure.parents.items():
    print(name, "given" if parents else "", ", ".join(parents))
    print(network.cpts[name].round(2))

# %% [markdown]
# ## How well does it predict?
#
# The test records are synthetic: the figure says how well the network predicts records of its own
# kind. `vertibayes learn --validate holdout` tests on real records.

# %%
print("AUC of infarct:", validation.overall.auc, "interval:", validation.interval)

# %% [markdown]
# ## What if?
#
# `predict_proba` computes the probabilities of a variable from whatever is known of a person.

# %%
cases = pd.DataFrame(
    {
        "age": [67, 67, np.nan],
        "smoker": ["yes", "no", "yes"],
        "pressure": [151, 151, np.nan],
    },
    index=["smoker, high pressure", "the same, not a smoker", "a smoker, nothing else known"],
)
risks = network.predict_proba(cases, "infarct")
print(risks.round(3))

# %% [markdown]
# ## Release less
#
# The edges are chosen without any table. One table for each variable is released, in which counts
# below 10 are 0.

# %%
with federate(sites) as federation:
    study = open_study(federation.session, federation.sites, federation.dealer, choices=True)
    released = learn_released(
        SecretChooser(study), study.release, Options(), Rule("cut", fewest=10)
    )
cut = released.learned.network
print("edges:", *(f"{parent} -> {child}" for parent, child in cut.structure.edges))
print(f"the choices reveal at most {released.bits:.0f} bits; both predictions:")
print(cut.predict_proba(cases, "infarct").round(3))

# %% [markdown]
# ## Hand it over
#
# pgmpy reads the network as an object; other programs read the saved files.

# %%
model = cut.to_pgmpy()
print(type(model).__name__, "checked:", model.check_model())
for name in ("model.json", "model.bif", "model.bifxml"):
    cut.save(FOLDER / name)

# %% [markdown]
# ## The report
#
# A report is made of a folder of results, which the command `vertibayes learn` writes. In Jupyter,
# a line that begins with `!vertibayes` does the same. `write_report` writes the page again.

# %%
people.to_csv(FOLDER / "people.csv", index=False)
options = """
    learn --sites 2 --id-column patient --missing-codes age=999 --ignore-case smoker
    --cut age=40,60,75 --cut pressure=120,130,140,150 --target infarct --validate scv
    --release cut --quiet
"""
data, results = FOLDER / "people.csv", FOLDER / "results"
command = [sys.executable, "-m", "vertibayes", *options.split()]
subprocess.run([*command, "--data", str(data), "--out", str(results)], check=True)
page = write_report(results)
print(f"{page}: {page.stat().st_size / 1000:.0f} kB; open it in a browser")
