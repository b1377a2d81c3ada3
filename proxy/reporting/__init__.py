"""What is told: counters, metrics, log lines, violation events."""
