"""Parties: what each role sends and receives, sites and their data, policy, ledger, transports."""

RELEASE = "0.2.0"  # of the whole project: parties of two versions name it to each other
