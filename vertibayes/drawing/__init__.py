"""Drawings of graphs: where nodes and edges lie, and the SVG."""
