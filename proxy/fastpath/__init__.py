"""The compiled fast path, which parses frames, keeps the order of responses and forwards ordinary requests."""
