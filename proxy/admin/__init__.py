"""The admin endpoint, which serves /metrics, /livez, /readyz and the API of the web UI over HTTP."""
