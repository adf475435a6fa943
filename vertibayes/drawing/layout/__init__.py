"""Lay out the nodes and edges of a directed acyclic graph in layers.

The steps are those of Sugiyama, Tagawa and Toda (1981): `layers` puts parents above children with
short edges, `crossings` orders each layer, `coordinates` places the items of layers side by side,
and `placement` puts the unconnected parts of a graph beside each other. The package depends on
numbers and sizes of nodes only; equal graphs have equal layouts.
"""
