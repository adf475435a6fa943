"""What a party keeps on disk across sessions: its memory and its ledger, and how both are written.

memory      what a site remembers; its parts are changes (values of columns), meet_counts
            (comparisons), record_sets, run_record (steps of a run), and runs_together (what it has
            of other sites' ledgers)
ledger_file a site's ledger; ledger_entries: its lines; chain: their heads
whole_file  files that are replaced as a whole or grow by whole entries, and their formats;
            block_file: a temporary file of masked columns

A site's memory is in files that are replaced as a whole, and not in a database. A copy of a file is
never torn, any process may read it beside the running site, and a test makes each call of the
system fail that a note makes; inside SQLite it cannot. A note of a memory of 50,000 people takes
12 ms (two syncs; SQLite: 4 ms with a write-ahead log, without which a copy is not whole, or 23 ms
with a rollback journal), and one of a million people 33 ms (SQLite: 8 or 28 ms).

Nothing in this package sends anything.
"""
