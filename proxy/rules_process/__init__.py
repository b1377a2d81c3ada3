"""A separate process that evaluates rules of unknown cost, so that an evaluation can be stopped."""
