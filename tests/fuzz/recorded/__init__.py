"""What real clients have sent, byte for byte, and how it was recorded (`python -m tests.fuzz.recorded.record`)."""
