"""Builds a job's report, one HTML file that contains its plots and needs no network."""
