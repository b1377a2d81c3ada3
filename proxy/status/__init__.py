"""What state the proxy is in, and which conditions explain it."""
