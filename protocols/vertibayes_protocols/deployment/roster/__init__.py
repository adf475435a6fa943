"""Rosters: one signed file with the names, roles and public keys of a consortium."""
