"""Message schemas: one file per family of APIs, with the changes in each version."""
