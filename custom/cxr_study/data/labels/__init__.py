"""Label tables: reading csv files, class names, label policies, merges."""
