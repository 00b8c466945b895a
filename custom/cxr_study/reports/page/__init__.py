"""What all pages share: look, pictures, figures and numbers."""
