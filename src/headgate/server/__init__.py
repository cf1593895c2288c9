"""The HTTP server: rows and statements come in, results and how everything is go out. Needs `headgate[serve]`."""
