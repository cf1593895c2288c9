"""Life of a query, last step: how each operator of a plan is kept up to date, as Spark SQL over one epoch."""
