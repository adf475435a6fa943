"""Structures: scores, and searches that maximize them."""
