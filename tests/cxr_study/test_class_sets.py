from cxr_study.class_sets import PUBLISHED_CLIENTS
from cxr_study.vocabulary import NIH_CLASSES


def test_there_is_one_sorted_class_set_per_site_and_together_they_are_all_of_nih():
    for k, sites in PUBLISHED_CLIENTS.items():
        assert len(sites) == k
        assert {name for site in sites for name in site} == set(NIH_CLASSES)
        assert all(list(site) == sorted(set(site)) for site in sites)


def test_two_sites_share_four_classes():
    first, second = PUBLISHED_CLIENTS[2]
    assert set(first) & set(second) == {"Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion"}
