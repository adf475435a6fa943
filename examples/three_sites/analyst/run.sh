#!/bin/sh
# The analyst: learns the network of the study and writes it into the folder results.
cd "$(dirname "$0")" || exit
vertibayes check study.toml && exec vertibayes learn study.toml --out results
