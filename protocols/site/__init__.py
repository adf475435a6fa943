"""Reading, encoding and keeping a site's data. Nothing in this package sends anything."""
