"""The tokens for logins of the proxy and the pipeline, from a token endpoint or from a file."""
