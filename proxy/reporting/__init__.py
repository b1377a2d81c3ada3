"""Reports the work of the proxy as metrics, log lines and violation events."""
