from pathlib import Path
from xml.etree import ElementTree

from cxr_study.reports.page.readme_picture import FINDINGS, picture

KEPT = Path(__file__).parents[4] / "custom/pictures/union_head.svg"


def test_the_kept_picture_is_the_one_that_is_drawn_and_names_every_finding():
    assert KEPT.read_text(encoding="utf-8") == picture()
    texts = [element.text for element in ElementTree.fromstring(picture()).iter()]
    for finding in FINDINGS:
        assert finding in texts
