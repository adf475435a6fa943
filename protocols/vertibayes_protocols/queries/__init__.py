"""The kinds of queries: names, policy and ledger over the generators of `vertibayes_mpc`."""

from vertibayes_protocols.engine import conversation
from vertibayes_protocols.queries.alignment.align import Align
from vertibayes_protocols.queries.choices.choose import Choose
from vertibayes_protocols.queries.consensus import CONSENSUS
from vertibayes_protocols.queries.consensus_query import Consensus, ReleasedConsensus
from vertibayes_protocols.queries.opening.begin import Begin
from vertibayes_protocols.queries.opening.commit import Commit
from vertibayes_protocols.queries.opening.describe import Describe, Description
from vertibayes_protocols.queries.opening.meet import Meet
from vertibayes_protocols.queries.predictions.predict import Predict
from vertibayes_protocols.queries.predictions.score_table import ScoreTable
from vertibayes_protocols.queries.publish import PUBLISH, Publish
from vertibayes_protocols.queries.releases.release import Release
from vertibayes_protocols.queries.report import REPORT, Report
from vertibayes_protocols.queries.scores import SCORES, Scores
from vertibayes_protocols.queries.sum_query import ReleasedSums, Sums
from vertibayes_protocols.queries.sums import SUMS
from vertibayes_protocols.queries.tables.tables import Tables
from vertibayes_protocols.queries.updates import UPDATES, ReleasedUpdates, Updates
from vertibayes_protocols.session import Conversations

CONVERSATIONS = Conversations(
    conversation(Begin), conversation(Align), conversation(Meet), conversation(Describe),
    conversation(Commit),
    conversation(Tables), conversation(Choose), conversation(Release),
    SUMS, UPDATES, REPORT, PUBLISH, SCORES, CONSENSUS,
    conversation(Predict), conversation(ScoreTable),
)  # fmt: skip

__all__ = [
    "CONVERSATIONS",
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
