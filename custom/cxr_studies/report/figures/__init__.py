"""The figures of a study's page, each readable at half the page's width.

Each gives an SVG element (`name`: see `drawing.svg`), or None if there is nothing to draw.
"""
