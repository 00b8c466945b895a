"""Sites: site files, patient splits, and a site's labels and images."""
