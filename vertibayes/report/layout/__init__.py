"""Where to draw the nodes and edges of a directed acyclic graph, layer by layer.

In the steps of Sugiyama, Tagawa and Toda (1981): `layers` puts parents above children with short
edges, `crossings` orders each layer, `coordinates` places the items of layers side by side, and
`placement` puts the parts of a graph that are not connected beside each other. Nothing here knows
what a node or a picture is; equal graphs give equal layouts.
"""

from vertibayes.report.layout.placement import Layout, Size, lay_out

__all__ = ["Layout", "Size", "lay_out"]
