"""Topics read raw: record batches as they lie on the broker, by the project's own protocol code."""
