"""All kinds of traffic and faults together, for a long time: nothing may be lost and nothing may grow."""
