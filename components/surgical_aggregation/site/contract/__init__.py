"""The site: what an application implements, and what a hospital's policy leaves of it."""
