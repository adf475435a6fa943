#!/bin/sh
# Do on one machine, for a trial, all that the organizations do before a run:  prepare.sh FOLDER
# Between machines each party makes its own key, and gives the others the line that keygen prints.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
echo '*' > "$1/.gitignore"  # private keys and exact counts: `git add` must not take them
for party in clinic hospital registry dealer analyst relay; do cp -r "$here/$party" "$1/$party"; done
python "$here/make_records.py" "$1"
cd "$1"

# Each party makes a key; its public half goes into the files of the other parties.
for party in clinic hospital registry dealer analyst; do
    public=$(vertibayes keygen --out "$party/$party.key")
    sed -i.bak "s|KEY OF $party\"|$public\"|" */*.toml
done
rm -f */*.toml.bak

# The coordinator certifies who may connect to the relay, and under which name.
vertibayes provision --parties clinic,hospital,registry,dealer,analyst --host 127.0.0.1 --out coordinator
for party in clinic hospital registry dealer analyst relay; do
    cp coordinator/"$party"/* "$party"/
done
