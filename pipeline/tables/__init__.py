"""Tables that stay from run to run, where users keep theirs: Parquet, Delta Lake or Iceberg."""
