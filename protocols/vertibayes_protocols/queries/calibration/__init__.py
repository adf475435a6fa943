"""A calibration between machines: rounds in which sites speak with their neighbours."""
