"""Parameters: conditional probability tables from counts."""
