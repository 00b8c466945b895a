import base64
import io

import numpy as np
import pytest
from jinja2 import UndefinedError
from markupsafe import Markup
from PIL import Image

from cxr_study.reports.page.html import label_cells, picture, template


def test_a_template_has_values_as_text_and_the_common_filters_and_page(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "some_page").mkdir()

    def filled(source, filters=None, **values):
        (tmp_path / "some_page/template.html.j2").write_text(source, encoding="utf-8")
        template.cache_clear()  # the template has changed
        return template("some_page", **(filters or {})).render(**values)

    assert filled("{{ name }}", name="<b>&\"'") == "&lt;b&gt;&amp;&#34;&#39;"
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        filled("{{ name }}")
    source = "{{ 2 | counted('site') }}: {{ 'ab' | listed }}, {{ 3 | twice }}, {{ 4 | number }}"
    assert filled(source, {"twice": lambda n: 2 * n}) == "2 sites: a and b, 6, 4"
    title = "{% block title %}{{ name }}{% endblock %}"
    page = filled("{% extends 'base.html.j2' %}" + title, name="A")
    assert ".badge { display:" in page and "<title>A</title>" in page and "<h1>A<span" in page


def test_cells_have_the_names_of_their_columns_which_are_text():
    rows = Markup(
        '<tr><th scope="row">a</th><td colspan="2">b</td></tr>\n<tr class="x"><td>c</td><td>d</td>'
        "<td>&lt;td>&gt;</td></tr>"
    )
    assert label_cells(rows, ["A", '"<B>', "C"]) == (
        '<tr><th scope="row" data-label="A">a</th>'
        '<td colspan="2" data-label="&#34;&lt;B&gt;, C">b</td></tr>\n'
        '<tr class="x"><td data-label="A">c</td><td data-label="&#34;&lt;B&gt;">d</td>'
        '<td data-label="C">&lt;td>&gt;</td></tr>'
    )


def test_small_pictures_are_kept_pixel_by_pixel_and_large_ones_reduced():
    def read(image):
        kind, _, data = picture(image, "nih").partition(",")
        assert kind == "data:image/png;base64"
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))

    image = np.arange(64, dtype=np.uint8).reshape(8, 8)
    np.testing.assert_array_equal(read(image), image)
    assert read(np.zeros((400, 400), np.uint8)).shape == (256, 256)
    for other in (np.zeros((8, 8)), np.zeros((8, 9), np.uint8), np.zeros((8, 8, 1), np.uint8)):
        with pytest.raises(ValueError, match=r"needs shape \(s, s\) and dtype uint8.*'nih'"):
            picture(other, "nih")
