"""What an operator asks of Produce requests and of who sends them, and whom nothing is asked."""
