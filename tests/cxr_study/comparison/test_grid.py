import json

from cxr_study.comparison.grid import HEAD_WEIGHTINGS, ROWS, Cell


class TestRows:
    def test_every_method_stands_there_with_the_strategies_that_apply(self):
        strategies = {}
        for row in ROWS:
            strategies.setdefault(row.method, set()).add(row.strategy)
        everywhere = {"fedavg", "fedbn+"}
        assert strategies == {
            "surgical": everywhere | {"fedbn"},
            "personalised": everywhere | {"fedbn"},
            "vanilla": everywhere,
            "partial_loss": everywhere,
            "individual": everywhere,
            "centralised": everywhere,
            "centralised-partial": everywhere,
        }
        assert {row.head_weighting for row in ROWS} == {"mean"}

    def test_names_differ_and_can_be_those_of_files(self):
        names = [row.name for row in (*ROWS, *HEAD_WEIGHTINGS)]
        assert len(set(names)) == len(names)
        assert not any(set(name) & set("/ \\:") for name in names)

    def test_titles_and_variants_together_tell_rows_apart(self):
        shown = [(row.title, row.variant) for row in (*ROWS, *HEAD_WEIGHTINGS)]
        assert len(set(shown)) == len(shown)


class TestCell:
    def test_it_survives_json(self, made_up):
        cell = made_up.cell(seed=3, label="again-")
        assert Cell.from_json(json.loads(json.dumps(cell.to_json()))) == cell

    def test_its_name_tells_row_seed_and_purpose(self, made_up):
        assert made_up.cell(seed=3, label="again-").name == "again-surgical-fedbn+-seed3"
