"""How a session begins: who may connect, and to which broker it leads."""
