"""One session, made of its parts: how it opens, what handles its requests and responses, and how it closes."""
