"""The kinds of queries: names, policy and ledger over the generators of `mpc`."""

from protocols.queries.commit import COMMIT, Commit
from protocols.queries.describe import DESCRIBE, Describe, Description
from protocols.queries.meet import MEET, Meet
from protocols.queries.tables import TABLES, Tables
from protocols.session import Conversations

CONVERSATIONS = Conversations(MEET, DESCRIBE, COMMIT, TABLES)

__all__ = ["CONVERSATIONS", "Commit", "Describe", "Description", "Meet", "Tables"]
