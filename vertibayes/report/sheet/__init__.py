"""One text for the terminal and for paper."""
