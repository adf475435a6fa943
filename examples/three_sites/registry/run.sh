#!/bin/sh
# The registry: one process, one outgoing connection, to the relay. Stop it with Ctrl-C.
cd "$(dirname "$0")" || exit
vertibayes check site.toml && exec vertibayes site site.toml
