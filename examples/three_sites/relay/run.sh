#!/bin/sh
# The relay: the one that others connect to. Stop it with Ctrl-C.
cd "$(dirname "$0")" || exit
vertibayes check relay.toml && exec vertibayes relay relay.toml
