"""The compiled fast path: framing, in-flight order and forwarding of ordinary requests."""
