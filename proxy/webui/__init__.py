"""The web UI at the admin address: its files, access control, and the streams of live data."""
