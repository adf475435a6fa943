"""The page of a run, ``report.html``: a function of the files in a folder of results."""
