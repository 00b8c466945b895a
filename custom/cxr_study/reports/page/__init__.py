"""What the pages for people have in common: their look, pictures, figures and words."""
