"""The web UI at the admin address, with its files, access control, and the streams of live data."""
