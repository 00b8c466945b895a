import pytest

from flare import context
from surgical_aggregation.server.access.server_policy import tables
from surgical_aggregation.site.contract.site_policy import PolicyError


def test_there_may_be_none_either_or_both():
    job, server = {"a": ["Edema"]}, {"a": ["Mass"], "b": []}
    assert tables(context(), None) == tables(context(policy={}), None) == ()
    assert tables(context(), job) == (job,)
    assert tables(context(policy={"permitted": server}), None) == (server,)
    assert tables(context(policy={"permitted": server}), job) == (job, server)


@pytest.mark.parametrize("table", [None, ["Edema"], {"a": "Edema"}, {"a": [1]}, {"a": None}])
def test_one_that_is_malformed_is_refused_by_place(table):
    with pytest.raises(PolicyError, match=r"^the server's local/privacy.json: 'permitted' needs"):
        tables(context(policy={"permitted": table}), None)
    if table is not None:
        with pytest.raises(PolicyError, match=r"^the job's configuration: 'permitted' needs a lis"):
            tables(context(), table)


@pytest.mark.parametrize("key", ["permited", "share"])
def test_another_key_is_refused(key):
    with pytest.raises(PolicyError, match=f"may have the keys permitted; got .*{key}"):
        tables(context(policy={key: {}}), None)
