"""Message schemas, one file for each family of APIs, with the changes of each version."""
