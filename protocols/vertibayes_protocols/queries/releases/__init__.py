"""Releases: the tables that a study ends with, by the rule that its sites have approved."""
