"""What is said in a broker's place or changed in its answers."""
