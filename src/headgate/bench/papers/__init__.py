"""The papers' own experiments, for `headgate bench papers`: one module each, with shared arrivals and charts."""
