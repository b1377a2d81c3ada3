"""The tokens with which the proxy and the pipeline log in, from a token endpoint or from a file."""
