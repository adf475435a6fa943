"""Parties: what each role sends and receives, sites and their data, policy, ledger, transports."""
