"""The assembly and the lifecycle of one running proxy."""
