"""What the papers claim about their studies, and the numbers that they report."""
