"""Write numbers from `figures`, and code, into README and docs.

`make figures PROFILE=seeds` calls ``python docs/renew.py``. The function of `KINDS` writes
the text between the marks ``<!-- KIND WORDS: begin -->`` and ``<!-- KIND: end -->``, with
the words as its arguments.
"""

import argparse
import ast
import re
import textwrap
from pathlib import Path

import pandas as pd
from articles import REPORTED

from prslib import previews, statistics
from prslib.cli import _parser
from prslib.datasets import DATASETS, load_dataset
from prslib.paths import figures_dir, project_root, replacing
from prslib.report import ledger
from prslib.report.answers import STREAMS, join_words
from prslib.report.claims import CLAIMS
from prslib.report.ledger import as_markdown
from prslib.report.tables import TEST_WORDS, write_differences
from prslib.train import RunConfig

ROOT = project_root()
BLOCK = re.compile(r"(<!-- (\w+)([^:]*): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)
# a line of the list; `your_stream` is not matched, because its answer depends on the stream
QUESTION = re.compile(r"^- \[(.+)\]\((\w+)\.ipynb\)", re.MULTILINE)
FOOTNOTE = (
    "† These numbers are from synthetic data made of handwritten digits. Numbers that are not "
    "called synthetic are from real data, which are COCO images unless another stream is named. "
    "Intervals apply to single comparisons, whereas verdicts on claims are corrected for the "
    "number of claims."
)
ALIKE, AS_IT_COMES = "balanced", "imbalanced"
# columns of the tables of samplers
SAMPLERS = {
    "CBRS": "CBRS",
    "PRS": "PRS, $\\rho \\approx 0$",
    "PRS, rho 0.5": "PRS, $\\rho = 0.5$",
    "OCDM": "OCDM",
}
# test set, class group and metric of each row of the verdict on several labels per sample
ROWS = [
    (ALIKE, "overall", "mAP"),
    (ALIKE, "overall", "C-F1"),
    (ALIKE, "overall", "O-F1"),
    (ALIKE, "minority", "C-F1"),
    (ALIKE, "majority", "C-F1"),
    (AS_IT_COMES, "overall", "mAP"),
    (AS_IT_COMES, "overall", "C-F1"),
    (AS_IT_COMES, "overall", "O-F1"),
]
COST = AS_IT_COMES, "overall", "O-F1"
TUNED = "(tuned threshold)"
GROUP_WORDS = {
    "overall": "",
    "minority": " of the minority classes",
    "majority": " of the majority classes",
}
MEASURED = [(ALIKE, "mAP"), (ALIKE, "C-F1"), (AS_IT_COMES, "O-F1")]
ON_TEST = {
    ALIKE: "on the test with classes alike",
    AS_IT_COMES: "on the test as the stream comes",
}


def read_numbers(name: str, folder: str = REPORTED) -> pd.DataFrame:
    """Read a table that a notebook or a benchmark wrote."""
    return pd.read_csv(figures_dir(folder) / f"{name}.csv")


def answer(notebook: str) -> str:
    """Return a notebook's answer, marked with † if it is about synthetic data."""
    sentence, data = read_numbers(f"{notebook}_sentence").iloc[0]
    return f"{sentence}†" if data == "stand-in" else sentence


def list_answers(folder: str = "") -> str:
    """Return the questions, linked to the articles, and answers, chapter by chapter."""
    start = (ROOT / "notebooks" / "start.md").read_text("utf-8")
    parts = []
    for chapter in start.split("\n## ")[1:]:
        rows = [
            {"question": f"[{question}]({folder}{name}.md)", "answer": answer(name)}
            for question, name in QUESTION.findall(chapter)
        ]
        for row in rows:
            if "tail_forgetting" in row["question"]:
                row["answer"] += (
                    " With the standard memory and after correction, the claim that CRS forgets "
                    f"minority classes more (as a share) {say_verdicts('tail_crs')}."
                )
        title = chapter.partition("\n")[0]
        parts.append(f"### {title}\n\n{as_markdown(pd.DataFrame(rows))}")
    return "\n\n".join([*parts, FOOTNOTE])


def pivot(file: str, index: str, columns: str, values: str, *where: str) -> str:
    """Return means of the rows of a CSV that meet conditions such as "memory=2000"."""
    rows = read_numbers(*reversed(file.split("/")))
    for condition in where:
        column, value = condition.split("=")
        rows = rows[rows[column].astype(str) == value]
    table = rows.pivot_table(values, index, columns, sort=False)
    table.columns = [str(name) for name in table.columns]
    return as_markdown(table.map("{:,.1f}".format).reset_index())


def say_range(values: pd.Series) -> str:
    """Return "-1.3 to +2.5"."""
    return f"{values.min():+.1f} to {values.max():+.1f}"


def choose(means: pd.DataFrame, cost: pd.Series) -> str:
    """Return the sampler that a row of the verdict names (docs/what_holds.md, rule 8).

    ``means`` are mean differences from CRS, with a row per sampler and a column per
    score; ``cost`` are the differences by which one of several equally good samplers is
    chosen.
    """
    means = pd.concat([means, pd.DataFrame(0.0, ["CRS"], means.columns)])
    is_good = (means >= means.max() - statistics.SMALL).all(axis=1)
    best = cost.reindex(means.index, fill_value=0.0)[is_good].idxmax()
    return f"**{SAMPLERS.get(best, best)}**"


def mean_differences() -> pd.DataFrame:
    """Return the mean and the range over the streams of each sampler minus CRS, by score."""
    columns = ["test_set", "group", "metric", "method"]
    return read_numbers("when_it_pays_ranges").set_index(columns).sort_index()


def choose_for(scores: list[tuple[str, str, str]]) -> str:
    """Return the sampler to use for scores, each a test set, a group and a metric."""
    means = mean_differences()["mean"].unstack()
    return choose(means.loc[scores].T, means.loc[COST])


def give_verdict() -> str:
    """Return which sampler to use by test and score, and its gains on the streams."""
    ranges = mean_differences()
    rows = []
    for test_set, group, metric in ROWS:
        row = {"your test": TEST_WORDS[test_set], "score": metric + GROUP_WORDS[group]}
        for method, column in SAMPLERS.items():
            ends = ranges.loc[test_set, group, metric, method][["lowest", "highest"]]
            row[column] = say_range(ends)
        rows.append(row | {"use": choose_for([(test_set, group, metric)])})
    rows += [sum_up_subsampled(), sum_up_single_label()]
    return as_markdown(pd.DataFrame(rows))


def sum_up_verdict() -> str:
    """Return the verdict in four rows: the sampler to use, its gain and its cost."""
    few = sum_up_subsampled()
    costs = {name: say_gain(name, *COST) for name in SAMPLERS}
    lost = [f"{column} {costs[name]}" for name, column in SAMPLERS.items()]
    scores = ["mAP", "C-F1", "O-F1"]
    rows = [
        (
            "classes alike: mAP, C-F1 or O-F1",
            choose_for([(ALIKE, "overall", metric) for metric in scores]),
            list_gains(ALIKE, scores),
            f"C-F1 of the majority classes {say_gain('CBRS', ALIKE, 'majority', 'C-F1')}",
        ),
        (
            "as the stream comes: mAP or C-F1",
            choose_for([(AS_IT_COMES, "overall", metric) for metric in scores[:2]]),
            list_gains(AS_IT_COMES, scores[:2]),
            f"O-F1 {costs['CBRS']}, C-F1 of the majority classes "
            f"{say_gain('CBRS', AS_IT_COMES, 'majority', 'C-F1')}",
        ),
        (
            "as the stream comes: O-F1",
            choose_for([COST]),
            "; ".join(lost),
            "the gain of CBRS in mAP and C-F1",
        ),
        (
            f"{few['your test']}; {few['score']}",
            few["use"],
            f"CBRS {few['CBRS']} (on an equally long stream with Reuters' own class mix: "
            f"{say_scores(mean_of_draws('part893').loc['CBRS'])})",
            "the gain of CBRS in mAP",
        ),
    ]
    columns = ["your test and score", "use", "minus CRS", "what it costs"]
    notes = {
        "Other samplers": compare_samplers(),
        "Rare classes": say_rare(),
        "Thresholds": compare_thresholds(),
        "Other streams": describe_further(),
    }
    listed = "\n".join(f"- **{title}.** {text}" for title, text in notes.items())
    table = as_markdown(pd.DataFrame(rows, columns=columns))
    return f"{table}\n\n{listed}"


def say_gain(method: str, test_set: str, group: str, metric: str) -> str:
    """Return a sampler's range over the streams, and on how many it is significant."""
    row = mean_differences().loc[test_set, group, metric, method]
    arrows = {"above": "↑", "below": "↓"}
    counts = [f"{row[side]:.0f}{arrow}" for side, arrow in arrows.items() if row[side]]
    words = say_range(row[["lowest", "highest"]])
    return f"{words} ({', '.join(counts)})" if counts else words


def list_gains(test_set: str, metrics: list[str]) -> str:
    """Return CBRS's ranges in overall scores."""
    gains = [f"{m} {say_gain('CBRS', test_set, 'overall', m)}" for m in metrics]
    return f"CBRS {', '.join(gains)}"


def compare_samplers() -> str:
    """Return in words how PRS and OCDM compare with CBRS and CRS."""
    gaps = read_numbers("main_results_prs_minus_others").query("than == 'CBRS'")
    by_cell = gaps.set_index(["group", "test_set", "metric"])["difference"].sort_index()
    mean_ap, _, o_f1 = [say_range(by_cell.loc["overall", *kind]) for kind in MEASURED]
    others = [
        f"{say_gain(name, ALIKE, 'overall', 'mAP')} with {SAMPLERS[name]}"
        for name in ("PRS", "OCDM", "PRS, rho 0.5")
    ]
    means = mean_differences()["mean"].loc[COST]
    return (
        f"In mAP {ON_TEST[ALIKE]}, the difference from CRS is {join_words(others)}. PRS "
        f"($\\rho \\approx 0$) minus CBRS is {mean_ap} points in this score, and {o_f1} points in "
        f"O-F1 {ON_TEST[AS_IT_COMES]}. The mean of this O-F1 over the streams changes by "
        f"{means['PRS, rho 0.5']:+.2f} points with PRS, $\\rho = 0.5$, and by "
        f"{means['CBRS']:+.2f} with CBRS."
    )


def say_rare() -> str:
    """Return in words what the samplers gain on the minority classes, and what it costs."""

    def say_all(group: str, metric: str) -> str:
        names = ("OCDM", "PRS", "CBRS")
        return join_words([say_gain(name, ALIKE, group, metric) for name in names])

    return (
        f"{ON_TEST[ALIKE].capitalize()}, C-F1 of the minority classes changes by "
        f"{say_all('minority', 'C-F1')} with OCDM, PRS and CBRS, and C-F1 of the majority "
        f"classes by {say_all('majority', 'C-F1')}. At tuned thresholds, C-F1 of the minority "
        f"classes changes by {say_all('minority', f'C-F1 {TUNED}')}."
    )


def compare_thresholds() -> str:
    """Return in words what CBRS gains and loses at tuned thresholds."""
    of_all = say_gain("CBRS", ALIKE, "overall", f"C-F1 {TUNED}")
    of_majority = say_gain("CBRS", ALIKE, "majority", f"C-F1 {TUNED}")
    cost = AS_IT_COMES, "overall", f"O-F1 {TUNED}"
    majority = choose_for([(ALIKE, "majority", "C-F1")])
    majority_tuned = choose_for([(ALIKE, "majority", f"C-F1 {TUNED}")])
    return (
        "F1 is measured at a threshold of 0.5. If a threshold is tuned for each run on a fifth "
        f"of its stream, CBRS minus CRS is {of_all} points in C-F1 and {of_majority} in C-F1 of "
        f"the majority classes {ON_TEST[ALIKE]}, and {say_gain('CBRS', *cost)} in O-F1 "
        f"{ON_TEST[AS_IT_COMES]}, for which {choose_for([cost])} is recommended. For "
        f"C-F1 of the majority classes with classes alike, use {majority} at 0.5 and "
        f"{majority_tuned} at tuned thresholds."
    )


def say_subsampled() -> str:
    """Describe the stream of the verdict's row on few small classes."""
    sizes = load_dataset("reutersseq-cap30").train.labels.sum(axis=0)
    small = int((sizes < previews.SMALL * sizes.mean()).sum())
    return (
        f"Reuters, subsampled to an imbalance of {sizes.max() / sizes.min():.0f}:1, so that "
        f"{small} of {len(sizes)} classes are smaller than half the mean size"
    )


def sum_up_subsampled() -> dict:
    """Return the verdict's row for a stream with few small classes."""
    row = {
        "your test": f"few small classes ({say_subsampled()})",
        "score": "classes alike: mAP, C-F1; as the stream comes: O-F1",
    }
    means = mean_of_draws("cap30")
    for method, column in SAMPLERS.items():
        row[column] = "not run"
        if method in means.index:
            row[column] = say_scores(means.loc[method])
    return row | {"use": choose(means, means[MEASURED[2]])}


def mean_of_draws(cut: str) -> pd.DataFrame:
    """Return the mean over draws of each sampler minus CRS on a subsampled Reuters, by score."""
    rows = read_numbers("when_it_pays_cuts").query("cut == @cut")
    scores = ["test_set", "metric"]
    return rows.pivot_table("difference", "method", scores)[MEASURED]


def say_scores(means: pd.Series) -> str:
    """Return the differences in the scores of `MEASURED` as text."""
    gains = [f"{metric} {mean:+.1f}" for (_, metric), mean in means.items()]
    return f"{', '.join(gains[:2])}; {gains[2]}"


def say_single_label() -> str:
    """Return in words what balanced memories gain with one label per sample."""
    row = sum_up_single_label()
    return (
        "With one label per sample (synthetic digits, classes alike), CBRS gains "
        f"{row['CBRS']} and PRS {row[SAMPLERS['PRS']]} points of accuracy."
    )


def sum_up_single_label() -> dict:
    """Return the verdict's row for samples with one label."""
    gains = read_numbers("single_label_minus_crs").groupby("method")["difference"]
    row = {"your test": "one label per sample (synthetic digits)", "score": "accuracy"}
    for method, column in SAMPLERS.items():
        row[column] = say_range(gains.get_group(method))
    means = gains.mean().loc[list(SAMPLERS)]
    return row | {"use": choose(means.to_frame(), means)}


def list_streams() -> str:
    """Return CBRS and PRS minus CRS, stream by stream."""
    gaps = read_numbers("when_it_pays_minus_crs").query("group == 'overall'")
    gaps = gaps.fillna({"clearly": ""})
    gaps = gaps.assign(cell=write_differences(gaps))
    cells = gaps.set_index(["dataset", "method", "test_set", "metric"]).sort_index()[
        "cell"
    ]
    rows = []
    for name, words in STREAMS.items():
        for method in ("CBRS", "PRS"):
            row = {"stream": words, "sampler": SAMPLERS[method]}
            for test_set, metric in MEASURED:
                column = f"{metric}, {TEST_WORDS[test_set]}"
                row[column] = cells[name, method, test_set, metric]
            rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def list_memories() -> str:
    """Return the distances of the memories' shares from equal shares and the stream's."""
    distances = read_numbers("memory_distribution_distance")
    means = distances.groupby(["dataset", "method"])[["to equal", "to stream"]].mean()
    rows = []
    for name in distances["dataset"].unique():
        shares = read_numbers(f"memory_distribution_{name}")
        of_mean = shares.pivot_table("share", "class", "method")  # over seeds
        gaps = of_mean.sub(of_mean["Stream"], axis=0).abs().sum() / 2
        for method in ("Stream", "CRS", "PRS", "CBRS", "OCDM", "ExStream"):
            row = {"stream": STREAMS[name], "shares in": SAMPLERS.get(method, method)}
            row |= means.loc[name, method].map("{:.1f}".format)
            row["mean memory to stream"] = f"{gaps[method]:.1f}"
            rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def list_turns() -> str:
    """Return in which other settings CBRS minus CRS changes its sign."""
    survives = read_numbers("sensitivity_survives").query("method == 'CBRS'").fillna("")
    turned = survives[survives["turns"] != ""]
    places = [
        f"- {row['metric']} on {STREAMS[row['dataset']]}: {row['turns'].replace('; ', ', ')}"
        for row in turned.to_dict("records")
    ]
    gaps = read_numbers("sensitivity_minus_crs")
    worst = gaps.loc[gaps["difference"].idxmin()]
    turns = []
    for (name, metric, method), cells in gaps.groupby(["dataset", "metric", "method"]):
        standard = cells.loc[cells["setting"] == "standard", "difference"].item()
        is_turned = cells["clearly"].notna() & (cells["difference"] * standard < 0)
        turns += [
            f"{row['difference']:+.1f} points of {metric} for {method} on {STREAMS[str(name)]} "
            f"with {row['setting']} (standard: {standard:+.1f})"
            for row in cells[is_turned].to_dict("records")
        ]
    listed = "\n".join(places)
    return (
        f"{answer('sensitivity')} The sign changes with these settings:\n\n{listed}\n\n"
        f"{say_turned(turns)}"
        f"Of all samplers and settings, {worst['method']} on {STREAMS[worst['dataset']]} with "
        f"{worst['setting']} falls furthest below CRS: {worst['difference']:+.1f} points of "
        f"{worst['metric']}."
    )


def say_turned(turns: list[str]) -> str:
    """Return in words which differences change their sign significantly."""
    if not turns:
        return "No difference is significant with the opposite sign. "
    return (
        f"With all samplers, {len(turns)} differences are significant with the opposite sign: "
        f"{join_words(turns)}. The standard values differ from the table above, because these "
        "comparisons have fewer seeds. "
    )


def count_claims() -> str:
    """Count the claims by verdict, on real and on synthetic data."""
    return as_markdown(ledger.counts(read_numbers("ledger_claims")).reset_index())


def say_verdicts(claim: str) -> str:
    """Name the real streams on which a claim holds after correction."""
    return ledger.say_verdicts(read_numbers("ledger_claims"), claim)


def list_replicated() -> str:
    """Say what PRS does by construction, and on which real streams main claims hold."""
    decided = read_numbers("ledger_claims")
    # the last line counts what was not tested
    lines = ledger.summarise(decided).splitlines()[:-1]
    place = AS_IT_COMES, "overall"
    o_f1, mean_ap = (say_gain("PRS, rho 0.5", *place, m) for m in ("O-F1", "mAP"))
    lines[-1] += (
        f" On the four streams of the next section, this difference is {o_f1} points in O-F1 and "
        f"{mean_ap} points in mAP."
    )
    on_coco = decided[decided["dataset"] == "cocoseq-mini"].set_index("claim")[
        "verdict"
    ]
    holding = on_coco[on_coco == "holds"].index
    number = sum(CLAIMS[name].headline for name in holding)
    count = f"{number or 'none'} of them {'hold' if number > 1 else 'holds'}"
    heading = f"{say_memories()} On COCO, which is part of the paper's images, {count}."
    return "\n".join([heading, "", *lines])


def say_memories() -> str:
    """Return in words how far memories of the paper's streams are from equal class shares."""
    gaps = read_numbers("memory_distribution_distance", "paper")
    away = gaps.pivot_table("to equal", "dataset", "method")
    coco, nus = away.loc["cocoseq"], away.loc["nuswideseq"]
    return (
        "By construction, PRS balances its memory. After all images of COCOseq, the class shares "
        f"in a memory of {DATASETS['cocoseq'].recipe.memory_size:,} samples are "
        f"{coco['PRS']:.1f} points away from equal shares with PRS, and {coco['CRS']:.1f} points "
        f"with CRS. For NUS-WIDEseq, these distances are {nus['PRS']:.1f} and {nus['CRS']:.1f} "
        "points ([labels only](docs/real_coco.md#cocoseq-and-nus-wideseq-end-to-end)). The list "
        "shows the verdicts on the main claims about scores."
    )


def describe_further() -> str:
    """Summarise the results on further streams, whose data are not in the repository."""
    gaps = read_numbers("more_streams", "studies")
    by_method = gaps.set_index(["method", "test_set", "metric"])[
        "difference"
    ].sort_index()
    words = []
    for method in ("CBRS", "PRS"):
        ends = [say_range(by_method.loc[(method, *place)]) for place in MEASURED]
        words.append(
            f"{method} minus CRS is {ends[0]} points in mAP and {ends[1]} in C-F1 "
            f"{ON_TEST[ALIKE]}, and {ends[2]} in O-F1 {ON_TEST[AS_IT_COMES]}."
        )
    o_f1 = gaps[(gaps["test_set"] == AS_IT_COMES) & (gaps["metric"] == "O-F1")]
    above = [
        f"{SAMPLERS[row['method']].replace(', ', ' with ')} on {row['dataset']} "
        f"({row['difference']:+.1f} points)"
        for row in o_f1[o_f1["low"] > 0].to_dict("records")
    ]
    leaders = f"only {join_words(above)}" if above else "no sampler"
    collections = (
        "[public collections](docs/other_streams.md#further-public-collections)"
    )
    return (
        f"On {gaps['dataset'].nunique()} {collections}, {' '.join(words)} Significantly above "
        f"CRS in this O-F1: {leaders}. {say_single_label()}"
    )


def check_rule() -> str:
    """Return in words how often a trial named a sampler that scored lower with other seeds."""
    rows = read_numbers("trial_rule", "studies").fillna("")
    named = rows[rows["named"] != ""]
    behind = named["better"].str.split(", ").explode()
    is_other = [row["better"] not in row["alike"] for row in named.to_dict("records")]
    below, missed = (behind == "CRS").sum(), sum(is_other)
    outcome = (
        f"For {below} of these {len(named)} scores, the first recommended sampler was then "
        f"significantly below CRS, and for {missed} it was significantly below a sampler that "
        "had not been recommended"
    )
    if below == missed == 0:
        outcome = (
            f"For none of these {len(named)} scores was the first recommended sampler then "
            "significantly below CRS or below a sampler that had not been recommended"
        )
    return (
        f"With five seeds, trials on the report's four streams recommended samplers for "
        f"{len(named)} of {len(rows)} scores. The comparison was repeated with twenty other "
        f"seeds. {outcome} (`studies/trial_rule.py`)."
    )


def quote(file: str, name: str = "") -> str:
    """Return a code block with a file, or with one of its functions or methods."""
    text = (ROOT / file).read_text("utf-8")
    if name:
        nodes = ast.parse(text).body
        for step in name.split("."):
            node = next(n for n in nodes if getattr(n, "name", "") == step)
            nodes = getattr(node, "body", [])
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        text = textwrap.dedent("\n".join(lines))
    return f"```py\n# {file}\n{text.strip()}\n```"


def list_recipes() -> str:
    """Return the default settings of runs by data set."""
    rows = []
    for name, entry in DATASETS.items():
        recipe = entry.recipe
        if "tiny" in name or name.startswith("reutersseq-"):  # for tests; as reutersseq
            continue
        rows.append(
            {
                "data set": f"`{name}`",
                "network": f"`{recipe.model}`",
                "optimiser": recipe.optimizer,
                "step size": f"{recipe.learning_rate:g}",
                "batch": f"{recipe.batch_size} + {recipe.replay_batch_size}",
                "clip": f"{recipe.clip_value:g}",
                "memory": recipe.memory_size,
                "epochs": RunConfig.epochs,
                "arithmetic": recipe.precision,
                "$\\rho$": f"{recipe.rho:g}",
                "EWC": f"{recipe.ewc_lambda:g}",
            }
        )
    return as_markdown(pd.DataFrame(rows))


def list_commands() -> str:
    """Return a section per command: what it does, its arguments and an example."""
    return "\n\n".join(map(describe, commands_of(_parser())))


def commands_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of all commands, including the commands of `prepare`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parts = [commands_of(command) for command in action.choices.values()]
            return [command for part in parts for command in part]
    return [parser]


def describe(command: argparse.ArgumentParser) -> str:
    """Return the section of a command."""
    text = re.sub(r"(\$[\w/<>]+|--[\w-]+)", r"`\1`", command.description)
    lines = [f"## {command.prog}", "", text, ""]
    for action in command._actions[1:]:  # without --help
        name = ", ".join(action.option_strings) or action.dest
        meaning = (action.help or "") % vars(action)
        lines.append(f"- `{name}`: {meaning}" if meaning else f"- `{name}`")
    example = command.epilog.removeprefix("example: ")
    return "\n".join([*lines, "", "```sh", example, "```"])


KINDS = {
    "answer": answer,
    "answers": list_answers,
    "claims": count_claims,
    "code": quote,
    "commands": list_commands,
    "memories": list_memories,
    "recipes": list_recipes,
    "rule": check_rule,
    "replicated": list_replicated,
    "streams": list_streams,
    "summary": sum_up_verdict,
    "table": pivot,
    "turns": list_turns,
    "verdict": give_verdict,
}


def fill(block: re.Match) -> str:
    """Return a block with the current text between its marks."""
    begin, kind, words, end = block.groups()
    return f"{begin}{KINDS[kind](*words.split())}\n{end}"


def renew() -> dict[Path, str]:
    """Return each page and its text with current numbers and code."""
    top = [ROOT / "README.md", ROOT / "paper.md"]
    pages = [*top, *sorted(ROOT.glob("docs/**/*.md"))]
    return {page: BLOCK.sub(fill, page.read_text("utf-8")) for page in pages}


if __name__ == "__main__":
    for file, text in renew().items():
        with replacing(file) as opened:
            opened.write(text.encode())
