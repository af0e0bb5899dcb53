"""Write numbers of `figures`, and code, into README and docs.

`make figures PROFILE=seeds` calls ``python docs/renew.py``. What is between the marks
``<!-- KIND WORDS: begin -->`` and ``<!-- KIND: end -->`` is written by the function in
`KINDS`, with the words as its arguments.
"""

import argparse
import ast
import re
import textwrap
from pathlib import Path

import pandas as pd
from articles import REPORTED

from prslib.cli import _parser
from prslib.datasets import DATASETS
from prslib.paths import figures_dir, project_root, replacing
from prslib.report.answers import STREAMS
from prslib.report.ledger import as_markdown, counts, summarise
from prslib.report.tables import TEST_WORDS
from prslib.train import RunConfig

ROOT = project_root()
BLOCK = re.compile(r"(<!-- (\w+)([^:]*): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)
# of the list; `your_stream` has another answer for each stream
QUESTION = re.compile(r"^- \[(.+)\]\((\w+)\.ipynb\)", re.MULTILINE)
FOOTNOTE = (
    "† on a stand-in made of handwritten digits; the other numbers are from real data, "
    "COCO images where no other is named."
)


def numbers(name: str, folder: str = REPORTED) -> pd.DataFrame:
    """Read a table that a notebook or a benchmark wrote."""
    return pd.read_csv(figures_dir(folder) / f"{name}.csv")


def answer(notebook: str) -> str:
    """Return a notebook's answer, with a mark if it is about a stand-in."""
    sentence, data = numbers(f"{notebook}_sentence").iloc[0]
    return f"{sentence}†" if data == "stand-in" else sentence


def list_answers(folder: str = "") -> str:
    """Return the questions, which lead to the articles, and answers, chapter by chapter."""
    start = (ROOT / "notebooks" / "start.md").read_text("utf-8")
    parts = []
    for chapter in start.split("\n## ")[1:]:
        rows = [
            {"question": f"[{question}]({folder}{name}.md)", "answer": answer(name)}
            for question, name in QUESTION.findall(chapter)
        ]
        title = chapter.partition("\n")[0]
        parts.append(f"### {title}\n\n{as_markdown(pd.DataFrame(rows))}")
    return "\n\n".join([*parts, FOOTNOTE])


def pivot(file: str, index: str, columns: str, values: str, *where: str) -> str:
    """Return means of a CSV's rows that have certain values, "memory=2000" and the like."""
    rows = numbers(*reversed(file.split("/")))
    for condition in where:
        column, value = condition.split("=")
        rows = rows[rows[column].astype(str) == value]
    table = rows.pivot_table(values, index, columns, sort=False)
    table.columns = [str(name) for name in table.columns]
    return as_markdown(table.map("{:,.1f}".format).reset_index())


def give_verdict() -> str:
    """Return which sampler to take by test and score, and what it brought on the streams."""
    ranges = numbers("when_it_pays_ranges")
    ranges = ranges.set_index(["test_set", "group", "metric", "method"])

    def say(method: str, test_set: str, *metrics: str, group: str = "overall") -> str:
        """Return the ranges over streams of a method's differences from CRS."""
        texts = []
        for metric in metrics:
            row = ranges.loc[test_set, group, metric, method]
            texts.append(f"{metric} {row['lowest']:+.1f} to {row['highest']:+.1f}")
        return ", ".join(texts)

    others = ["CBRS", "PRS, rho 0.5", "PRS", "OCDM"]
    lost = [
        say(name, "imbalanced", "O-F1").replace("O-F1", f"{name}:") for name in others
    ]
    small = numbers("when_it_pays_cuts")
    small = small[(small["cut"] == "cap30") & (small["method"] == "CBRS")]
    means = small.groupby(["test_set", "metric"])["difference"].mean()
    kinds = [("balanced", "mAP"), ("balanced", "C-F1"), ("imbalanced", "O-F1")]
    level = [f"{kind[1]} {means[kind]:+.1f}" for kind in kinds]
    rows = [
        {
            "your test and score": "all classes alike: mAP or C-F1",
            "take": "CBRS",
            "against CRS": say("CBRS", "balanced", "mAP", "C-F1"),
            "what it costs": "the frequent classes' "
            + say("CBRS", "balanced", "C-F1", group="majority"),
        },
        {
            "your test and score": "like the stream: mAP or C-F1",
            "take": "CBRS",
            "against CRS": say("CBRS", "imbalanced", "mAP", "C-F1"),
            "what it costs": say("CBRS", "imbalanced", "O-F1"),
        },
        {
            "your test and score": "like the stream: O-F1",
            "take": "CRS",
            "against CRS": "O-F1 of " + "; ".join(lost),
            "what it costs": "what CBRS brings in mAP and C-F1",
        },
    ]
    row = {
        "your test and score": "hardly any class has less than half of the mean class's samples"
    }
    row |= {"take": "CRS", "against CRS": f"CBRS: {', '.join(level)}"}
    rows.append(row | {"what it costs": "nothing"})
    table = as_markdown(pd.DataFrame(rows))
    return f"{table}\n\n{describe_further()} {compare_thresholds()}"


def compare_thresholds() -> str:
    """Return how much of CBRS's gain and loss is left at thresholds of the runs' own."""
    ranges = numbers("when_it_pays_ranges")
    cells = ranges[(ranges["method"] == "CBRS") & (ranges["group"] == "overall")]
    cells = cells.set_index(["test_set", "metric"])
    words = []
    for test_set, metric in [("balanced", "C-F1"), ("imbalanced", "O-F1")]:
        usual = cells.loc[test_set, metric]
        at_own = cells.loc[test_set, f"{metric} (own threshold)"]
        text = f"{at_own['lowest']:+.1f} to {at_own['highest']:+.1f} points of {metric}"
        text += f" (at 0.5: {usual['lowest']:+.1f} to {usual['highest']:+.1f})"
        words.append(f"{text} {TEST_WORDS[test_set]}")
    return (
        "F1 is at a threshold of 0.5, so it is partly calibration, in gain and in loss. At a "
        "threshold that each run chooses on a fifth of its stream, CBRS minus CRS is "
        f"{' and '.join(words)}."
    )


def list_turns() -> str:
    """Return in which other settings CBRS minus CRS changes its sign."""
    survives = numbers("sensitivity_survives").query("method == 'CBRS'").fillna("")
    turned = survives[survives["turns"] != ""]
    places = [
        f"{row['metric']} on {STREAMS[row['dataset']]} ({row['turns']})"
        for row in turned.to_dict("records")
    ]
    gaps = numbers("sensitivity_minus_crs")
    worst = gaps.loc[gaps["difference"].idxmin()]
    lost = (
        f"{worst['difference']:+.1f} points of {worst['metric']}, of {worst['method']}"
    )
    lost += f" on {STREAMS[worst['dataset']]} ({worst['setting']})"
    return (
        f"{answer('sensitivity')} It turns in {'; '.join(places)}. The largest loss of any "
        f"sampler in any setting is {lost}."
    )


def count_claims() -> str:
    """Count the claims by verdict, real images apart from stand-ins."""
    return as_markdown(counts(numbers("ledger_claims")).reset_index())


def list_replicated() -> str:
    """Say what the rare classes gain, and where each of the paper's main claims holds."""
    text = f"- **PRS keeps the rare classes**: {answer('main_results')}\n"
    text += summarise(numbers("ledger_claims"))
    for name, words in STREAMS.items():
        text = text.replace(name, words)
    # the last line counts what was not tested
    return "\n".join(text.splitlines()[:-1])


def describe_further() -> str:
    """Say what came out on further streams, whose data are not in the repository."""
    gaps = numbers("more_streams", "studies")
    by_method = gaps.set_index(["method", "test_set", "metric"])
    words = []
    for test_set, metric in [("balanced", "mAP"), ("imbalanced", "O-F1")]:
        cells = by_method.loc[("CBRS", test_set, metric)]
        low, high = cells["difference"].min(), cells["difference"].max()
        words.append(f"{low:+.1f} to {high:+.1f} in {metric} {TEST_WORDS[test_set]}")
    o_f1 = gaps[(gaps["test_set"] == "imbalanced") & (gaps["metric"] == "O-F1")]
    above = [
        f"{row['method']} on {row['dataset']} ({row['difference']:+.1f})"
        for row in o_f1[o_f1["low"] > 0].to_dict("records")
    ]
    text = f"On {gaps['dataset'].nunique()} further streams CBRS minus CRS is "
    text += (
        f"{' and '.join(words)}. Significantly above CRS in O-F1 as the stream comes: "
    )
    return text + (", ".join(above) or "no sampler") + "."


def check_rule() -> str:
    """Say how often a trial with few seeds named a sampler that turned out behind."""
    rows = numbers("trial_rule", "studies").fillna("")
    named = rows[rows["named"] != ""]
    behind = named["better"].str.split(", ").explode()
    listed = named[named["better"] != ""]
    alike = sum(row["better"] in row["alike"] for row in listed.to_dict("records"))
    return (
        f"With five seeds, trials of the report's four streams named a sampler in "
        f"{len(named)} of {len(rows)} questions. With twenty other seeds "
        f"{(behind == 'CRS').sum()} of these were significantly behind CRS, and "
        f"{len(listed)} behind another sampler, which in {alike} of them had been named "
        "as doing equally well (`studies/trial_rule.py`)."
    )


def quote(file: str, name: str = "") -> str:
    """Return a block with a file's code, or with that of one function or method."""
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
    """Return the settings of a run by data set, one row for those that share them."""
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
                "$\\rho$": f"{recipe.rho:g}",
                "EWC": f"{recipe.ewc_lambda:g}",
            }
        )
    return as_markdown(pd.DataFrame(rows))


def list_commands() -> str:
    """Return a section per command: what it does, its arguments and an example."""
    sections = {}  # by description: sets of one kind share a command
    for command in commands_of(_parser()):
        sections.setdefault(command.description, []).append(command)
    return "\n\n".join(describe(commands) for commands in sections.values())


def commands_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of all commands, including the commands of `prepare`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parts = [commands_of(command) for command in action.choices.values()]
            return [command for part in parts for command in part]
    return [parser]


def describe(commands: list[argparse.ArgumentParser]) -> str:
    """Return the section of commands that differ in a name only."""
    command = commands[0]
    names = " or ".join(command.prog for command in commands)
    text = re.sub(r"(\$[\w/<>]+|--[\w-]+)", r"`\1`", command.description)
    lines = [f"## {names}", "", text, ""]
    for action in command._actions[1:]:  # without --help
        name = ", ".join(action.option_strings) or action.dest
        meaning = (action.help or "") % vars(action)
        lines.append(f"- `{name}`: {meaning}" if meaning else f"- `{name}`")
    example = command.epilog.removeprefix("example: ")
    return "\n".join([*lines, "", "```sh", example, "```"])


KINDS = {
    "answer": answer,
    "answers": list_answers,
    "calibration": compare_thresholds,
    "claims": count_claims,
    "code": quote,
    "commands": list_commands,
    "recipes": list_recipes,
    "rule": check_rule,
    "replicated": list_replicated,
    "table": pivot,
    "turns": list_turns,
    "verdict": give_verdict,
}


def fill(block: re.Match) -> str:
    """Return a block with the present text between its marks."""
    begin, kind, words, end = block.groups()
    return f"{begin}{KINDS[kind](*words.split())}\n{end}"


def renew() -> dict[Path, str]:
    """Return each page and its text with present numbers and code."""
    top = [ROOT / "README.md", ROOT / "paper.md"]
    pages = [*top, *sorted(ROOT.glob("docs/**/*.md"))]
    return {page: BLOCK.sub(fill, page.read_text("utf-8")) for page in pages}


if __name__ == "__main__":
    for file, text in renew().items():
        with replacing(file) as opened:
            opened.write(text.encode())
