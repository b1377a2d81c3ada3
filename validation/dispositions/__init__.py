"""What becomes of bad records: fixed, marked, or copied to a dead-letter topic."""
