"""What the proxy's own policies would have made of records that are stored already."""
