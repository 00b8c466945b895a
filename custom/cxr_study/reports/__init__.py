"""Pages for people: of a run, of a study, of an audit."""
