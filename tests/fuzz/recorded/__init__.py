"""Contains recorded streams of real clients, byte for byte (`python -m tests.fuzz.recorded.record`)."""
