#!/bin/sh
# The dealer: one process, one outgoing connection, to the relay. Stop it with Ctrl-C.
cd "$(dirname "$0")" || exit
vertibayes check dealer.toml && exec vertibayes dealer dealer.toml
