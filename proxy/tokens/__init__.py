"""The tokens that the proxy and the pipeline log in with: from a token endpoint, or from a file."""
