"""Write numbers from `figures`, and code, into README and docs.

`make figures PROFILE=seeds` calls ``python docs/renew.py``. Functions in `KINDS` write the
text between the marks ``<!-- KIND WORDS: begin -->`` and ``<!-- KIND: end -->``; the words
are the arguments of the function. The text of any other kind comes from the Jinja template
of this name in docs/_templates.
"""

import argparse
import ast
import re
import textwrap
from pathlib import Path

import pandas as pd
from articles import REPORTED
from jinja2 import StrictUndefined, Template

from prslib import statistics
from prslib.cli import _parser
from prslib.datasets import DATASETS
from prslib.paths import figures_dir, project_root, replacing
from prslib.report import ledger
from prslib.report.answers import STREAMS
from prslib.report.claims import CLAIMS
from prslib.report.ledger import as_markdown
from prslib.report.tables import BALANCED, IMBALANCED, TEST_WORDS, write_differences
from prslib.train import RunConfig

ROOT = project_root()
BLOCK = re.compile(r"(<!-- (\w+)([^:]*): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)
# a line of the list; `your_stream` is not matched, because its answer depends on the stream
QUESTION = re.compile(r"^- \[(.+)\]\((\w+)\.ipynb\)", re.MULTILINE)
# columns of the tables of samplers
SAMPLERS = {
    "CBRS": "CBRS",
    "PRS": "PRS, $\\rho \\approx 0$",
    "PRS, rho 0.5": "PRS, $\\rho = 0.5$",
    "OCDM": "OCDM",
}
# test set, class group and metric of each row of the verdict on several labels per sample
ROWS = [
    (BALANCED, "overall", "mAP"),
    (BALANCED, "overall", "C-F1"),
    (BALANCED, "overall", "C-F1 (tuned threshold)"),
    (BALANCED, "overall", "O-F1"),
    (BALANCED, "minority", "C-F1"),
    (BALANCED, "minority", "C-F1 (tuned threshold)"),
    (BALANCED, "majority", "C-F1"),
    (BALANCED, "majority", "C-F1 (tuned threshold)"),
    (IMBALANCED, "overall", "mAP"),
    (IMBALANCED, "overall", "C-F1"),
    (IMBALANCED, "overall", "O-F1"),
    (IMBALANCED, "overall", "O-F1 (tuned threshold)"),
    (IMBALANCED, "majority", "C-F1"),
]
COST = IMBALANCED, "overall", "O-F1"
GROUP_WORDS = {
    "overall": "",
    "minority": " of the minority classes",
    "majority": " of the majority classes",
}
MEASURED = [(BALANCED, "mAP"), (BALANCED, "C-F1"), (IMBALANCED, "O-F1")]


def read_numbers(name: str, folder: str = REPORTED) -> pd.DataFrame:
    """Read a table that a notebook or a benchmark wrote."""
    return pd.read_csv(figures_dir(folder) / f"{name}.csv")


def render(name: str) -> str:
    """Return the text of a template, which may call the functions of this module.

    An indented line of a template continues the line above it.
    """
    text = (ROOT / "docs" / "_templates" / f"{name}.jinja").read_text("utf-8")
    template = Template(re.sub(r"\n +", " ", text), undefined=StrictUndefined)
    return template.render(globals()).strip()


def answer(notebook: str) -> str:
    """Return a notebook's answer, marked with † if it is about synthetic data."""
    sentence, data = read_numbers(f"{notebook}_sentence").iloc[0]
    return f"{sentence}†" if data == "stand-in" else sentence


def list_chapters() -> dict[str, list[tuple[str, str]]]:
    """Return each chapter's questions with the names of their notebooks."""
    start = (ROOT / "notebooks" / "start.md").read_text("utf-8")
    chapters = [text.partition("\n") for text in start.split("\n## ")[1:]]
    return {title: QUESTION.findall(text) for title, _, text in chapters}


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


def choose_for(test_set: str, group: str, *metrics: str) -> str:
    """Return the sampler to use for scores on a test set."""
    means = mean_differences()["mean"].unstack()
    scores = [(test_set, group, metric) for metric in metrics]
    return choose(means.loc[scores].T, means.loc[COST])


def give_verdict() -> str:
    """Return which sampler to use by test and score, and its gains on the streams."""
    rows = []
    for test_set, group, metric in ROWS:
        row = {"your test": TEST_WORDS[test_set], "score": say_score(metric, group)}
        for method, column in SAMPLERS.items():
            row[column] = say_gain(method, test_set, group, metric)
        rows.append(row | {"use": choose_for(test_set, group, metric)})
    rows += [sum_up_subsampled(), sum_up_single_label()]
    table = pd.DataFrame(rows)
    table.insert(2, "use", table.pop("use"))  # where a narrow page shows it
    usual = measure_small_classes()["usual"]
    return (
        f"{as_markdown(table)}\n\n"
        "*Small* classes are smaller than half the mean class size. On the four streams, "
        f"{usual} of the classes are small."
    )


def say_score(metric: str, group: str) -> str:
    """Return "C-F1 of the minority classes (tuned threshold)"."""
    name, bracket, threshold = metric.partition(" (")
    return f"{name}{GROUP_WORDS[group]}{bracket}{threshold}"


def say_gain(method: str, test_set: str, group: str, metric: str) -> str:
    """Return a sampler's range over the streams, and on how many of them it is significant."""
    row = mean_differences().loc[test_set, group, metric, method]
    arrows = {"above": "↑", "below": "↓"}
    counts = [f"{row[side]:.0f}{arrow}" for side, arrow in arrows.items() if row[side]]
    words = say_range(row[["lowest", "highest"]])
    return f"{words} ({', '.join(counts)})" if counts else words


def measure_small_classes() -> dict[str, str]:
    """Return shares of small classes, and the imbalance of the subsampled Reuters stream."""
    sizes = read_numbers("when_it_pays_streams").set_index("dataset")
    draws = sizes[sizes.index.str.fullmatch(r"reutersseq-cap30(-\d)?")]
    return {
        "few": say_percents(draws["small"]),
        "usual": say_percents(sizes.loc[list(STREAMS), "small"]),  # on the four streams
        "imbalance": f"{draws['max:min'].mean():.0f}:1",
    }


def sum_up_subsampled() -> dict:
    """Return the verdict's row for a stream with few small classes."""
    size = measure_small_classes()
    row = {
        "your test": f"few small classes ({size['few']} of the classes; Reuters, subsampled "
        f"to an imbalance of {size['imbalance']})",
        "score": "balanced test: mAP, C-F1; imbalanced test: O-F1",
    }
    means = mean_of_draws("cap30")
    for method, column in SAMPLERS.items():
        row[column] = "not run"
        if method in means.index:
            mean_ap, c_f1, o_f1 = say_three(means, method)
            row[column] = f"mAP {mean_ap}, C-F1 {c_f1}; O-F1 {o_f1}"
    return row | {"use": choose(means, means[MEASURED[2]])}


def say_percents(shares: pd.Series) -> str:
    """Return "10 to 12 %"."""
    return f"{100 * shares.min():.0f} to {100 * shares.max():.0f} %"


def mean_of_draws(cut: str) -> pd.DataFrame:
    """Return the mean over draws of each sampler minus CRS on subsampled Reuters, by score."""
    rows = read_numbers("when_it_pays_cuts").query("cut == @cut")
    scores = ["test_set", "metric"]
    return rows.pivot_table("difference", "method", scores)[MEASURED]


def say_three(means: pd.DataFrame, method: str = "CBRS") -> list[str]:
    """Return a sampler's differences in the scores of `MEASURED`, such as "+0.6"."""
    return means.loc[method].map("{:+.1f}".format).tolist()


def sum_up_single_label() -> dict:
    """Return the verdict's row for samples with one label."""
    gains = read_numbers("single_label_minus_crs").groupby("method")["difference"]
    row = {
        "your test": "one label per sample (long-tailed synthetic digits)",
        "score": "accuracy",
    }
    for method, column in SAMPLERS.items():
        row[column] = say_range(gains.get_group(method))
    means = gains.mean().loc[list(SAMPLERS)]
    return row | {"use": choose(means.to_frame(), means)}


def list_streams() -> str:
    """Return CBRS and PRS minus CRS, stream by stream."""
    gaps = read_numbers("when_it_pays_minus_crs").query("group == 'overall'")
    gaps = gaps.fillna({"clearly": ""})
    gaps = gaps.assign(cell=write_differences(gaps))
    keys = ["dataset", "method", "test_set", "metric"]
    cells = gaps.set_index(keys)["cell"].sort_index()
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
    """Return the distances of the memories' shares from equal shares and from the stream's."""
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


def find_turned() -> list[dict]:
    """Return the significant differences whose sign is opposite in the standard setting."""
    gaps = read_numbers("sensitivity_minus_crs")
    keys = ["dataset", "metric", "method"]
    standard = gaps.query("setting == 'standard'")[[*keys, "difference"]]
    both = gaps.merge(standard, on=keys, suffixes=("", "_standard"))
    both = both.sort_values(keys, kind="stable")
    is_turned = both["difference"] * both["difference_standard"] < 0
    return both[is_turned & both["clearly"].notna()].to_dict("records")


def find_holding() -> list[str]:
    """Return the main claims that hold on COCO."""
    decided = read_numbers("ledger_claims").query("verdict == 'holds'")
    on_coco = decided.loc[decided["dataset"] == "cocoseq-mini", "claim"]
    return [name for name in on_coco if CLAIMS[name].headline]


def check_rule() -> dict[str, int]:
    """Count how often a trial named a sampler that scored lower with other seeds."""
    rows = read_numbers("trial_rule", "studies").astype(object).fillna("")
    named = rows[rows["named"] != ""]
    behind = named["better"].str.split(", ").explode()
    is_other = [row["better"] not in row["alike"] for row in named.to_dict("records")]
    counts = {"scores": len(rows), "named": len(named)}
    return counts | {"below_crs": (behind == "CRS").sum(), "missed": sum(is_other)}


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
    names = (
        r"(\$[\w/<>]+(?:\.\w+)?|--[\w-]+|\b\w+\.(?:csv|json|mat|npy|npz)(?:\.xz)?\b)"
    )
    text = re.sub(names, r"`\1`", command.description)
    options = []
    for action in command._actions[1:]:  # without --help
        name = ", ".join(action.option_strings) or action.dest
        meaning = (action.help or "") % vars(action)
        options.append(f"- `{name}`: {meaning}" if meaning else f"- `{name}`")
    example = command.epilog.removeprefix("example: ")
    parts = [f"## {command.prog}", text, "\n".join(options), f"```sh\n{example}\n```"]
    return "\n\n".join(filter(None, parts))


def count_claims() -> str:
    """Count the claims by verdict, and the main claims that hold on COCO."""
    table = as_markdown(ledger.counts(read_numbers("ledger_claims")).reset_index())
    main = sum(claim.headline for claim in CLAIMS.values())
    holding = len(find_holding())
    verb = "hold" if holding > 1 else "holds"
    return (
        f"{table}\n\nOf the {main} main claims, which the picture shows, "
        f"{holding or 'none'} {verb} on COCO."
    )


KINDS = {
    "answer": answer,
    "claims": count_claims,
    "code": quote,
    "commands": list_commands,
    "memories": list_memories,
    "recipes": list_recipes,
    "streams": list_streams,
    "table": pivot,
    "verdict": give_verdict,
}


def fill(block: re.Match) -> str:
    """Return a block with the current text between its marks."""
    begin, kind, words, end = block.groups()
    text = KINDS[kind](*words.split()) if kind in KINDS else render(kind)
    return f"{begin}{text}\n{end}"


def renew() -> dict[Path, str]:
    """Return each page and its text with current numbers and code."""
    top = [ROOT / "README.md", ROOT / "paper.md"]
    pages = [*top, *sorted(ROOT.glob("docs/**/*.md"))]
    return {page: BLOCK.sub(fill, page.read_text("utf-8")) for page in pages}


if __name__ == "__main__":
    for file, text in renew().items():
        with replacing(file) as opened:
            opened.write(text.encode())
