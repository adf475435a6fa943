"""Drawings and texts about the results of a run."""
