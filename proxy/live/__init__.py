"""The live state of a proxy for the web UI and `sluicegate top`, kept in limited memory."""
