"""A ledger in plain words: for the owner of a site, its officers, and the analyst."""
