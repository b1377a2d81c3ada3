"""The proxy's violation events as a stream: who sends what is refused, when and why."""
