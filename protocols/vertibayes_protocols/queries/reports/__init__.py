"""Questions that sites answer for each of their people, under local noise."""
