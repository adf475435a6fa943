"""``python -m vertibayes``."""

from vertibayes.cli import main

main()
