"""An algorithm of vantage6 5 that runs a site of a vertibayes study beside its data.

    site      data extraction    runs the site's process, returns a table of one row: its report
    status    data extraction    reads how a site stands, returns the same table; starts nothing
    report    federated          returns the report of one of these tables
    overview  central            collects the reports of organizations; starts no party

vantage6 mounts a node's database in the containers of data extractions alone, and keeps what they
return at the node. The database is the site's folder, with site.toml and everything that it names.
What `report` and `overview` return goes to the server: see `vertibayes.cli.hosted.Report`.
"""

from vertibayes_vantage6.reports import overview, report
from vertibayes_vantage6.site import site, status

__all__ = ["overview", "report", "site", "status"]
