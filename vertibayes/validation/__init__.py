"""How well a network predicts: on public records, and without any (SCV, SVDG)."""
