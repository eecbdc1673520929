"""Tables in files: CSV and Parquet, read against a schema or chunk by chunk."""

from corrdp.tables.options import FileOptions
from corrdp.tables.read import Table, column_chunks, read_table

__all__ = ["FileOptions", "Table", "column_chunks", "read_table"]
