"""What the user has defined and declared, by name."""
