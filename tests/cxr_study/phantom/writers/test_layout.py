import pandas as pd

from cxr_study.phantom.writers.layout import write_csv


def test_compressed_csv_is_the_same_bytes_every_time(tmp_path, monkeypatch):
    table = pd.DataFrame({"a": [1]})
    for folder, now in (("one", 1e9), ("two", 2e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        write_csv(table, tmp_path / folder / "a.csv.gz")
    one, two = ((tmp_path / folder / "a.csv.gz").read_bytes() for folder in ("one", "two"))
    assert one == two and one.startswith(b"\x1f\x8b")
    assert pd.read_csv(tmp_path / "one" / "a.csv.gz").equals(table)
