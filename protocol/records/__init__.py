"""Record batches (magic 2), message sets (magic 0 and 1), their codecs and checksums."""
