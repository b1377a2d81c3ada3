"""`sluicegate sandbox`, a Kafka endpoint with the policies of production, for the tests of producers."""
