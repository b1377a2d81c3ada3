"""What is installed: the folders of the repository, each linked here, under the one name they have beside others."""
