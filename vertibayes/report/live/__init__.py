"""What the analyst sees of a run while it runs: on the terminal, and as a page on this machine."""
