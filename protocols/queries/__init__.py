"""The kinds of queries: names, policy and ledger over the generators of `mpc`."""

from protocols.queries.align import ALIGN, Align
from protocols.queries.begin import BEGIN, Begin
from protocols.queries.choose import CHOOSE, Choose
from protocols.queries.commit import COMMIT
from protocols.queries.commit_query import Commit
from protocols.queries.consensus import CONSENSUS
from protocols.queries.consensus_query import Consensus, ReleasedConsensus
from protocols.queries.describe import DESCRIBE, Describe, Description
from protocols.queries.meet import MEET, Meet
from protocols.queries.predict import PREDICT, Predict
from protocols.queries.publish import PUBLISH, Publish
from protocols.queries.release_query import RELEASE, Release
from protocols.queries.report import REPORT, Report
from protocols.queries.score_table import SCORE_TABLE
from protocols.queries.score_table_query import ScoreTable
from protocols.queries.scores import SCORES, Scores
from protocols.queries.sum_query import ReleasedSums, Sums
from protocols.queries.sums import SUMS
from protocols.queries.tables import TABLES, Tables
from protocols.queries.updates import UPDATES, ReleasedUpdates, Updates
from protocols.session import Conversations

CONVERSATIONS = Conversations(
    BEGIN, ALIGN, MEET, DESCRIBE, COMMIT, TABLES, CHOOSE, RELEASE, PREDICT, SCORE_TABLE,
    SUMS, UPDATES, REPORT, PUBLISH, SCORES, CONSENSUS,
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
