"""Where a site's table lies: CSV and Parquet files, DuckDB and PostgreSQL databases.

Each source gives the columns as `vertibayes_protocols.site.text_column.TextColumn`, batch by batch:
the texts of all records are never in memory together.
"""
