from cxr_study.common.spelling import nearest


def test_up_to_three_near_names_are_offered_in_their_own_spelling():
    assert nearest("pleural thick", ["Mass", "Pleural_Thickening"]) == (
        "nearest known: Pleural_Thickening"
    )


def test_where_nothing_is_near_all_known_names_are_offered():
    assert nearest("xyz", ("labels", "images")) == "known: labels, images"
