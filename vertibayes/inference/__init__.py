"""Exact inference in discrete Bayesian networks."""
