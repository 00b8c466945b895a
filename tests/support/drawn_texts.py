"""What is written in figures of matplotlib."""


def texts(written):
    """What texts of a figure say."""
    return [text.get_text() for text in written]


def legend(of):
    """What the legend of a panel, or that above all panels, names."""
    return texts((of.legends[0] if hasattr(of, "legends") else of.get_legend()).get_texts())
