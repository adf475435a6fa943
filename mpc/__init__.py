"""Arithmetic and cryptography: rings, randomness, shares, masks. No columns, files or sockets."""
