"""Sums and single updates of sites that hold different records: exact, or with noise."""
