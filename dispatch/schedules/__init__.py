"""Standing work: patterns and definitions, the tables in Valkey, and who may put what into them."""
