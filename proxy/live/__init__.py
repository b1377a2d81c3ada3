"""The live state of a proxy for the web UI and `sluicegate top`, in bounded memory."""
