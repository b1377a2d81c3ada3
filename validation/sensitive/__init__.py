"""Masks, hashes or rejects sensitive fields before a batch is stored."""
