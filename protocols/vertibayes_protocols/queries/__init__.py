"""The kinds of queries: names, policy and ledger over the generators of `vertibayes_mpc`."""

from vertibayes_protocols.queries.alignment.align import Align
from vertibayes_protocols.queries.calibration.consensus import Consensus
from vertibayes_protocols.queries.calibration.consensus_query import ReleasedConsensus
from vertibayes_protocols.queries.choices.choose import Choose
from vertibayes_protocols.queries.columns.publish import Publish
from vertibayes_protocols.queries.columns.scores import Scores
from vertibayes_protocols.queries.opening.begin import Begin
from vertibayes_protocols.queries.opening.commit import Commit
from vertibayes_protocols.queries.opening.describe import Describe, Description
from vertibayes_protocols.queries.opening.meet import Meet
from vertibayes_protocols.queries.predictions.predict import Predict
from vertibayes_protocols.queries.predictions.score_table import ScoreTable
from vertibayes_protocols.queries.releases.release import Release
from vertibayes_protocols.queries.reports.report import Report
from vertibayes_protocols.queries.sums.sums import ReleasedSums, Sums
from vertibayes_protocols.queries.sums.updates import ReleasedUpdates, Updates
from vertibayes_protocols.queries.tables.tables import Tables
from vertibayes_protocols.query import AnyQuery

KINDS = frozenset[type[AnyQuery]]({
    Begin, Align, Meet, Describe, Commit, Tables, Choose, Release, Predict, ScoreTable,
    Sums, Updates, Report, Publish, Scores, Consensus,
})  # fmt: skip

__all__ = [
    "KINDS",
    "Align",
    "Begin",
    "Choose",
    "Commit",
    "Consensus",
    "Describe",
    "Description",
    "Meet",
    "Predict",
    "Publish",
    "Release",
    "ReleasedConsensus",
    "ReleasedSums",
    "ReleasedUpdates",
    "Report",
    "ScoreTable",
    "Scores",
    "Sums",
    "Tables",
    "Updates",
]
