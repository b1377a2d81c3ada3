"""`sluicegate sandbox`, a Kafka endpoint with production's policies for producers' tests."""
