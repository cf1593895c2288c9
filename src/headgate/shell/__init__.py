"""The interactive shell: a prompt for CQL whose queries run in the background and show their results as they come."""
