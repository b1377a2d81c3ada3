"""The live state of a proxy, in bounded memory, for the web UI and `sluicegate top`."""
