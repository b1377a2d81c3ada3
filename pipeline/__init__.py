"""Spark over topics as they are: profile, audit and repair, by the rules that the proxy judges with."""
