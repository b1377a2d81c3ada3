"""sluicegate's topic settings (`sluicegate.*`) in requests that create, alter, delete or describe topics."""
