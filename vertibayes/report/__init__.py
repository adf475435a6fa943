"""What a person or a program reads of a run: drawing, summary, disclosure."""
