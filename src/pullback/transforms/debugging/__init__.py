"""What users turn on to find a fault."""
