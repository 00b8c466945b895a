"""The audit of a site's labels and images: the census, what may be shared of it, its report."""
