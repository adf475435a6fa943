#!/bin/sh
# The relay: all other parties connect to it. Stop it with Ctrl-C.
cd "$(dirname "$0")" || exit
vertibayes check relay.toml && exec vertibayes relay relay.toml
