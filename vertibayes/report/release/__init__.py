"""The folder `release/` of a run: what was released, by which rule, and what it tells."""

from vertibayes.report.release.appetite import Appetite, read_appetite
from vertibayes.report.release.assessment import Assessment, assess
from vertibayes.report.release.folder import write_release

__all__ = ["Appetite", "Assessment", "assess", "read_appetite", "write_release"]
