"""`sluicegate-spark watch`: profiles and violations kept up to date, and told when a producer's damage begins."""
