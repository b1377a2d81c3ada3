"""Bounded decompression, codec by codec, as brokers decompress."""
