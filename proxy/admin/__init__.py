"""The admin endpoint: HTTP, /metrics, /livez, /readyz and the API of the web UI."""
