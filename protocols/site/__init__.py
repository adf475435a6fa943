"""A site's own room: reading, encoding and keeping its data. Nothing here sends anything."""
