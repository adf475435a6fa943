"""Calibration without a server: nodes of a communication network reach one classifier.

    factors       the factors of naive Bayes, normal densities and networks: columns, theta
    classifier    GenerativeClassifier: additive statistics, and theta in closed form
    starts        what nodes start from; the statistics that follow from a relay's sums
    local         LRC: a node moves statistics towards its own records        ([1]_, Algorithm 3)
    graph         the neighbours of each node, and their weights
    nodes         what a party keeps, sends and computes in each round
    agreed        what all parties agree on beforehand
    choices       the names of the ways to combine statistics and to start
    checks        choices, records and statistics that a node refuses

Two ways to bring statistics together. *Averaging* (``mean``, ``metropolis``) is CRC: before it
updates, each node replaces its statistics with the weighted mean of its neighbourhood's ([1]_,
Algorithm 2). A *relay* passes sums on along a spanning tree: each node has the exact sums of all
nodes, those of a node at a distance of d edges as they were d rounds before.

References
----------
.. [1] A. Pérez, C. Echegoyen, G. Santafé (2025). Decentralized Federated Learning of Probabilistic
   Generative Classifiers.
"""
