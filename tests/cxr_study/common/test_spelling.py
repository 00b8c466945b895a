from cxr_study.common.spelling import nearest


def test_up_to_three_near_names_are_offered_in_their_own_spelling_or_else_all():
    known = ["Mass", "Pleural_Thickening"]
    assert nearest("pleural thick", known) == "nearest known: Pleural_Thickening"
    assert nearest("xyz", ("labels", "images")) == "known: labels, images"
