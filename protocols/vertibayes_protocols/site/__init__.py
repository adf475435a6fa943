"""Reading and encoding a site's data. Nothing in this package sends anything."""
