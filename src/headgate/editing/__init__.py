"""A text while it is typed: its words, its statements, and how they can go on. For the shell and the console."""
