"""A job's report: one HTML file with its plots inside, which opens without internet."""
