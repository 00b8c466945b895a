"""Who may send what, and who gets what."""
