"""Counters, gauges and histograms, and their exposition."""
