"""Choices: which candidate of a set has the highest score; no table is revealed."""
