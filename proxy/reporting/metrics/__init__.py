"""Counters, gauges and histograms, and how they are exposed."""
