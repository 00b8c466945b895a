"""Label tables: what they hold, and what their classes are called."""
