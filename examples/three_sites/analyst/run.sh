#!/bin/sh
# The analyst: learns the study's network, and writes it to the folder results.
cd "$(dirname "$0")" || exit
vertibayes check study.toml && exec vertibayes learn study.toml --out results
