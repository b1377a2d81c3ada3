"""Reports what the proxy does: metrics, log lines, violation events."""
