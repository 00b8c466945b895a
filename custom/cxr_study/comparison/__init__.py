"""Every method and strategy of the papers, compared on the same data with the same recipe."""
