"""Arithmetic and cryptography: rings, randomness, shares, masks. No columns, files or sockets.

Each primitive is a module of its own, ``from vertibayes_mpc import masked_sum``, that opens with
its message figure, its adversary, what it leaks and what it costs:

masked_tables     contingency tables over columns of several parties, with a dealer
scalar_product    the n-party scalar product of the VertiBayes paper, corrected
masked_sum        sums of many parties' vectors, recovered when parties drop out
additive_scheme   sums of many parties' counts, one message each
product_scheme    products of many parties' counts, one message each
membership        keys and noise for parties that join, leave and fail
paillier          tables over columns of several sites, without a dealer
noise             discrete Laplace, diluted and shared noise on counts
"""
