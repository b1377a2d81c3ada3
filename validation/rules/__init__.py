"""The operator's rules for records, which go beyond a broker's checks."""
