"""Parties: what each role sends and receives, sites and their data, policy, ledger, transports."""

# Of the whole project: the wheel has it, and parties of two versions name it to each other. It is
# here, and not in a tag alone, because parties also run from copies without a history.
RELEASE = "0.2.0.dev0"
