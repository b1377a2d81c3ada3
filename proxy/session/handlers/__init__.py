"""One session and its parts, which open it, handle its requests and responses, and close it."""
