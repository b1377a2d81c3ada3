"""What an operator asks of records beyond what a broker asks: one small file for each kind of rule."""
