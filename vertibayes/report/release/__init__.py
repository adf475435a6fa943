"""The folder `release/` of a run: what was released, by which rule, and what it tells."""

from vertibayes.report.release.assessment import Assessment, assess
from vertibayes.report.release.folder import write_release

__all__ = ["Assessment", "assess", "write_release"]
