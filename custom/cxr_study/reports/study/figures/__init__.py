"""The figures of a study's report, as SVG elements; each is readable at half a page's width."""
