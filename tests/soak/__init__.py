"""Runs all kinds of traffic and faults together for a long time. Nothing may be lost and nothing may grow."""
