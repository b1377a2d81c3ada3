"""Reports the proxy's work as metrics, log lines and violation events."""
