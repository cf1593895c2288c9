"""The yardstick: the same questions over the same files, asked of headgate, Spark and Flink, turn by turn."""
