"""Parties as processes of their own: their configuration files, keys, certificates and commands.

tables      TOML, of which every key is checked; errors name file and line
files       site.toml, dealer.toml, study.toml, relay.toml; parts: what they are made of
pins        the parties that a file pins, by its own tables or by a roster
roster/     the signed list of a consortium's parties; changes: from one to the next; pinning:
            what changes at a party; identity: names retired keys
bundle      what all parties need, signed; enrolling, bundling, fetching: `vertibayes enrol` at each
            party, `bundle` at the coordinator, `fetch` at each party
keys        private key files, public keys as text
data        a site's records, as its file says; schema: a draft of its variables
approvals   what a site's owner has approved
signed_heads  the head of a site's ledger, signed
templates   what `vertibayes init` and `enrol` write; certificates: a small authority
checks      what can be said before a run
running     from a file to a running party: the one module that connects
log         one line for each event, and that a certificate expires
metrics     what a party answers a monitor
status      a file for a monitor; run_status: that of an analyst's run
"""
