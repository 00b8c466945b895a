"""What all pages share.

`base.html.j2` and `elements.html.j2` are the frame and the elements of a page, `style.css` its
style; `html` reads templates and embeds images, `drawing` makes figures, `numbers` formats values.
Pages load nothing from outside: style, figures and images are in the file.
"""
