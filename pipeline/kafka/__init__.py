"""Raw access to topics: record batches as stored by the broker, parsed by the project's own protocol code."""
