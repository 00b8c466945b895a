"""The figures of a study's page, each readable at half the page's width.

Each function returns an SVG element, or None if there is nothing to draw. Its argument `name`
makes the element's ids unique on the page; see `drawing.svg`.
"""
