"""The site: what a study implements, and what a hospital's policy leaves of it."""
