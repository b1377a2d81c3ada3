"""The proxy's violation events as a stream: who sends what is rejected, when and why."""
