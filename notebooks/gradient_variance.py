# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a balanced memory have a higher gradient variance?
#
# The paper's appendix measures how much the gradients of the samples in memory differ from each
# other (**Section "Gradient Variance"**, with one figure for Imbal-MNISTseq and one for COCOseq).
# At several points during training, the paper computes the trace of the covariance of these
# gradients, $\mathbb{E}\lVert g\rVert^2 - \lVert\mathbb{E}g\rVert^2$. The paper compares
# Partitioning Reservoir Sampling (PRS), which balances the memory, with other methods and finds: "A
# clear pattern we discover is that PRS maintains a relatively higher gradient variance compared to
# the other baselines." As a possible explanation, the paper suggests that the classes in the memory
# of PRS are more diverse, so that the network optimises more objectives at once. Because the paper
# reports no numbers with its figures, we can compare only the order of the
# [methods](main_results.ipynb) with the paper.
#
# This notebook computes the trace from the gradients of all samples in memory, not from a part of
# them (`prslib.gradients`). The network is in evaluation mode, because in training mode batch
# norm would make the gradient of a sample depend on the other samples of its batch. The
# [profile](../docs/quickstart.md#profiles) `quick` runs on the first of the following data sets,
# and the profile `seeds` runs on all three:
#
# - `cocoseq-mini`, 6 % of the real COCOseq. A network of two layers is trained on the features of a
#   frozen network.
# - `reutersseq`, news articles of Reuters-21578.
# - `imbal-digits`, **synthetic data** that replace Imbal-MNISTseq. The network is an MLP.
#
# *With the profile `quick`, the notebook takes 15 seconds on two cores. A second run takes ten
# seconds.*

# %% tags=["parameters"]
profile: str = "quick"  # name of the profile; -f params/PROFILE/NOTEBOOK.yaml chooses another one
dataset: list[str] = ["cocoseq-mini"]  # one or more data sets
rho: float = None  # power of allocation of PRS and OCDM, None for each data set's default
points: list[int] = [8]  # number of measurements during a run, one entry for each data set
method: list[str] = ["CRS", "GSS", "ExStream", "PRS"]  # methods with a memory, which must include CRS and PRS
seeds: list[int] = [0, 1]  # one run of every method for each seed
device: str = "cpu"  # cpu or cuda
save: str = ""  # folder for the pictures and tables, "" to write none

# %% jupyter={"source_hidden": true} tags=["runs"]
from prslib import configs
from prslib.report.grids import check_compared, check_memory, zip_fields


def runs(settings):
    """List runs that measure the gradient variance over their memory."""
    check_memory(settings.method)
    check_compared(settings.method, "CRS", "PRS")
    fixed = {"rho": settings.rho, "seed": settings.seeds, "method": settings.method}
    rows = zip_fields(dataset=settings.dataset, variance_points=settings.points)
    return [config for row in rows for config in configs(**row, **fixed)]

# %% jupyter={"source_hidden": true} tags=["functions"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

import prslib
from prslib.report import answers, notebook, style
from prslib.report.style import STYLE

# %%
plt.style.use(STYLE)
settings = notebook.Settings.read("gradient_variance", globals())
planned = runs(settings)
settings

# %% [markdown]
# ## The variance during the stream
#
# Lines are geometric means over seeds, and bands show one standard deviation of the logarithm. On
# `imbal-digits`, which has one label per sample, the seed also determines the order of the classes,
# which can add to the width of the bands. Until the memory is full, all methods except ExStream
# store every sample of the stream, so that their memories are identical.
#
# As the paper notes, ExStream is difficult to compare with the other methods. It replays stored
# feature vectors and, if the inputs are images, freezes the lower part of the network. Its memory
# is divided among the classes in advance and therefore fills up only as these classes arrive.

# %% jupyter={"source_hidden": true} tags=["functions"]
def variances_of(runs: list[prslib.Run]) -> pd.DataFrame:
    """Join the gradient variances of runs; "seen" is the percentage of the stream seen so far."""
    frames = []
    for run in runs:
        # the number of dropped images depends on the order of the tasks
        count = len(run.gradient_variance)
        seen = 100 * np.arange(1, count + 1) / count
        frames.append(run.gradient_variance.assign(seen=seen))
    return pd.concat(frames, ignore_index=True)

# %% tags=["compute"]
rows = variances_of(prslib.run_all(planned, device=settings.device))
settings.write(rows, "curves")

# %% jupyter={"source_hidden": true} tags=["functions"]
def plot_gradient_variance(frame: pd.DataFrame, ax: plt.Axes) -> plt.Axes:
    """Plot one data set's variances on a logarithmic scale, as geometric means over seeds."""
    styles = style.styles_of(frame["method"])
    style.draw_curves(frame, ax, "seen", "method", styles, log=True)
    ax.set(xlabel="share of the stream seen (%)", xlim=(0, 104), yscale="log")
    ax.set_ylabel("gradient variance over the memory\n(loss²/weight², log scale)")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    return ax

# %%
rows = settings.table("curves")
figure, axes = plt.subplots(1, len(settings.dataset), figsize=(11, 4.2), squeeze=False)
for ax, name in zip(axes[0], settings.dataset, strict=True):
    plot_gradient_variance(rows[rows["dataset"] == name], ax).set_title(name)
title = "Gradient variance over the memory during training"
settings.show(figure, "curves", f"{title}, {settings.say_seeds()}", narrow=1)

# %% [markdown]
# ## What can be concluded, and what cannot
#
# The [`ledger`](ledger.ipynb) uses these runs to test the paper's claims about the gradient
# variance. The paper does not state how it treats batch norm or how many samples of the memory it
# uses for the variance. The results on MNIST itself are in `figures/paper`. This command computes
# them:
#
# ```sh
# papermill notebooks/gradient_variance.ipynb out.ipynb -f params/paper/gradient_variance.yaml -y "{dataset: [imbal-mnistseq], points: [50], seeds: [0, 1, 2, 3, 4], device: cpu}"
# ```

# %% jupyter={"source_hidden": true} tags=["answer"]
shown = answers.first_set(rows)
name = shown["dataset"].iloc[0]
logarithms = np.log(shown.pivot_table("value", ["seed", "seen"], "method"))
ratio = logarithms["PRS"] - logarithms["CRS"]
whole = np.exp(ratio.groupby("seed").mean()).mean() - 1
at_end = np.exp(ratio[ratio.index.get_level_values("seen") > 75].mean()) - 1
higher, at_the_end = (f"{abs(100 * gap):.0f} % {'lower' if gap < 0 else 'higher'}" for gap in (whole, at_end))
sentence = f"On {name}, the gradient variance over the memory, averaged over the stream, is {higher} with PRS than"
sentence += f" with CRS. Over the last quarter of the stream, it is {at_the_end}."
settings.write_answer(sentence, name)
