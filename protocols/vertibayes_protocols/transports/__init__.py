"""Transports: they move bytes, and know no protocol. `local` runs all parties in one process."""
