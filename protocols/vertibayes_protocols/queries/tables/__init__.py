"""Contingency tables, exact: which way each is counted, what it takes, and the query."""
