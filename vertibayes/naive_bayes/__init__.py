"""Naive Bayes from additive statistics: of one party, of many, noisy or exact."""
