"""The process: the command, one server or several workers, the admin endpoint."""
