"""What a party keeps on disk across sessions: its memory and its ledger, and how both are written.

memory      what a site remembers; its parts are changes (values of columns), meet_counts
            (comparisons), record_sets, and run_record (steps of a run)
ledger_file a site's ledger; ledger_entries: its lines
whole_file  files that are replaced as a whole or grow by whole entries, and their formats;
            block_file: a temporary file of masked columns

Nothing in this package sends anything.
"""
