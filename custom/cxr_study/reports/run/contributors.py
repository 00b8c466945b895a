"""Which sites a run's model is of, in which rounds, and which are not in it."""

from cxr_study.common.wording import listed, rounds_listed
from cxr_study.evaluation.summary_json import Summary
from cxr_study.reports.run import run_view
from surgical_aggregation.checkpoints.manifest import rounds_in, spans


def absent(summary: Summary) -> list[str]:
    """Sites of the job that contributed to no round, as far as is known."""
    return [site for site, of in summary.contributions.items() if not of.rounds]


def absences(summary: Summary) -> list[str]:
    """Which sites are not in which rounds, and why, a sentence each; a dropped round counts not."""
    taken = {site: rounds_in(of.rounds) for site, of in summary.contributions.items()}
    final = run_view.final_round(summary)
    trained = [entry for entry in summary.rounds if entry.round != final]
    if not taken:  # an older summary
        taken = {s: {e.round for e in trained if s in e.sites} for s in summary.sites}
    first = trained[0].round if trained else summary.num_rounds
    made = {each for rounds in taken.values() for each in rounds if each >= first}
    told = []
    for site, rounds in taken.items():
        of = summary.contributions.get(site)
        why = f" ({of.reason})" if of and of.reason else ""
        if site in absent(summary):
            told.append(f"{site} contributed to no round{why}: the model has nothing of it.")
        elif missed := made - rounds:
            where = rounds_listed(spans(missed))
            told.append(f"{site} is not in {where}{why}; means there are over the others.")
    return told


def not_on_record(summary: Summary) -> str:
    """Rounds whose record is not at hand, such as `rounds 0 and 1`; "": there is none."""
    recorded = {entry.round for entry in summary.rounds}
    lost = {*range(summary.num_rounds)} - recorded if summary.contributions else set()
    return rounds_listed(spans(lost)) if lost else ""


def with_rounds(summary: Summary) -> str:
    """The sites, also of runs that this one continues, each with its rounds; "": not known."""
    known = summary.contributions.items()
    return listed([f"{site} ({rounds_listed(of.rounds)})" for site, of in known])
