"""How a command runs a job: its options, its Spark session, and its errors as one line."""
