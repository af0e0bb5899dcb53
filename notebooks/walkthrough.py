# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: kernelspec,jupytext,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does PRS do with one sample?
#
# This notebook follows Partitioning Reservoir Sampling over forty samples. The paper's Figure 2
# gives the overview and its Algorithm 1 the order of the steps. The *partition* says how much of
# the memory each class should have, *sample-in* whether a new sample enters, *sample-out* which
# sample it replaces. Every number below comes from the sampler itself: `sampler.explain(label)`
# returns what it would decide and why. It changes nothing and calls the functions of
# `sampler.place(labels)`.
#
# At the end the same sampler takes a stream as long as COCOseq, and you move its sliders.
#
# *A quarter of a minute; ten seconds more the first time, for the compiler. No network is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds, laptop or paper: whose folder the figures go to
rho: float = 0.0  # power of allocation on the forty samples, any finite number
memory_size: int = 12  # samples in memory on the forty samples
seed: int = 73  # of the streams and the samplers
rhos: list = [-0.5, 0.0, 0.5, 1.0]  # powers of allocation set side by side
samples: int = 35000  # length of the stream behind the sliders, at least 200

# %%
from prslib.report import walkthrough

settings = walkthrough.Settings.read(globals())
settings

# %% [markdown]
# ## Forty samples
#
# Five classes, A to E, from frequent to rare; about every fourth sample carries two labels, joined
# by a line. The sampler sees them one by one. The first ones fill the memory (Algorithm 1, lines 6
# to 9). Each later sample is dropped, or it enters and overwrites another one. Later samples may
# overwrite it in turn. The seed was picked so that one removal shows every case below.

# %%
import matplotlib.pyplot as plt

from prslib.report.style import STYLE

plt.style.use(STYLE)
stream = walkthrough.skewed_stream(40, 5, skew=1.2, second_labels=0.3, seed=settings.seed)
steps = walkthrough.walk(stream, settings.memory_size, settings.rho, settings.seed)
fates = walkthrough.fates(steps)
figure, ax = plt.subplots(figsize=(8, 3))
walkthrough.plot_fates(fates, settings.memory_size, ax)
columns = ["sample", "class", "acceptance", "slot", "fate"]
settings.save(figure, fates[columns], "stream")

# %% [markdown]
# ## The partition (Equation 1)
#
# Class $i$ was seen $n_i$ times, so its share is $p_i = n_i^\rho / \sum_j n_j^\rho$ and its quota
# $m_i = m\,p_i$. With $\rho = 0$ all classes get the same. With $\rho = 1$ each gets its share of
# the stream, the mix that conventional reservoir sampling has on average. A power between them is a
# compromise. A power below 0, which the paper uses for COCOseq (-0.03), gives rare classes more
# than frequent ones. The lines are the quotas, scaled to the number of labels in memory as in
# Equation 3. The marks are the labels in memory after the forty samples. A class cannot hold more
# samples than the stream had.

# %%
partition = walkthrough.quotas(stream, settings.memory_size, settings.rhos, settings.seed)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), width_ratios=[2, 3])
walkthrough.plot_frequencies(stream, axes[0])
walkthrough.plot_quotas(partition, axes[1]).set_title("after forty samples, one seed")
settings.save(figure, partition, "partition")

# %% [markdown]
# ## Sample-in (Equation 2)
#
# A new sample enters with probability $s = \sum_i w_i\, m_i / n_i$, cut at 1. Over its labels the
# weights $w_i$ are the softmax of $-n_i$: nearly all the weight lies on the rarest label. So a
# sample enters with about the chance of its rarest class. The letters above the stems are the
# sample's labels. The table shows the terms of one sample with several labels.

# %%
from IPython.display import Markdown, display

figure, ax = plt.subplots(figsize=(8, 3.2))
later = fates[fates["sample"] > settings.memory_size]
walkthrough.plot_acceptance(later, ax)
settings.save(figure, later[columns], "sample_in")
shown = max(steps[settings.memory_size :], key=lambda step: step.label.sum())
terms = walkthrough.contributions(shown)
settings.save(None, terms, "sample_in_terms")
text = f"Sample {shown.sample} ({walkthrough.names(shown.label)}) enters with probability"
text += f" s = {shown.decision.acceptance:.3f}, the sum of the products, cut at 1."
display(Markdown(text), terms.round(4))

# %% [markdown]
# ## Sample-out (Equations 3 to 5)
#
# The memory is full and the sample has entered: which one leaves? The surplus
# $\delta_i = l_i - p_i \sum_j l_j$ says how many labels a class holds above its target. One class
# is drawn among those with a surplus, with probability softmax$(\delta_i)$. The left picture gives
# the percentages; the drawn class is orange. The candidates $K$ are the members with the fewest
# labels of classes in need: the largest $\neg y \cdot q$, where $q_i = 1$ for a class without a
# surplus. The sampler removes the candidate whose absence brings the memory closest to the target.
# The right picture shows these distances; members outside $K$ have none and stand on the upper
# edge. Between equal candidates chance decides. The paper does not say how, and taking the first
# slot would overwrite a class's newest member again and again.

# %%
shown = walkthrough.clearest_removal(steps)
surpluses, members = walkthrough.surpluses(shown), walkthrough.candidates(shown)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
walkthrough.plot_surpluses(surpluses, walkthrough.shrunk_class(shown), axes[0])
walkthrough.plot_candidates(members, axes[1])
settings.save(figure, members, "sample_out")
settings.save(None, surpluses, "surplus")
text = f"Sample {shown.sample} ({walkthrough.names(shown.label)}) took slot {shown.slot} from"
display(Markdown(f"{text} {walkthrough.names(shown.memory[shown.slot])}."), members)

# %% [markdown]
# ## All forty
#
# How far is the memory from its target, sample after sample? Equation 5 minimises this distance:
# the sum of the absolute surpluses of all classes.

# %%
distances = fates.drop_duplicates("sample")[["sample", "distance", "entered"]]
figure, ax = plt.subplots(figsize=(8, 2.8))
walkthrough.plot_distances(distances, settings.memory_size, ax)
settings.save(figure, distances, "distance")

# %% [markdown]
# ## A long stream
#
# Now the same sampler takes a stream as long as COCOseq (35 072 images, 70 classes, 1.22 labels an
# image). The memory has the paper's share, 2000 for 35 000. The stream is drawn at random: a
# class's chance falls with its rank.

# %%
size = settings.samples * 2 // 35
long = walkthrough.skewed_stream(settings.samples, 70, skew=1.0, seed=settings.seed)
kept = walkthrough.quotas(long, size, settings.rhos, settings.seed)
figure, ax = plt.subplots(figsize=(9, 3.8))
walkthrough.plot_quotas(kept, ax, letters=False).set_title(f"memory of {size:,}, one seed")
settings.save(figure, kept, "long_stream")

# %% [markdown]
# How many of the labels in memory are outside their quota, and how many of the rarest class's
# samples does the memory hold?

# %%
import pandas as pd

by_rho = kept.groupby("rho")[["frequency", "in_memory", "quota"]]
outside, rarest = by_rho.apply(walkthrough.outside_quota), by_rho.last()
share = rarest["in_memory"] / rarest["frequency"]
table = {"labels outside their quota (%)": outside, "rarest class in memory (%)": share}
(100 * pd.DataFrame(table)).round(1)

# %% [markdown]
# Now move the sliders. Every move sends the whole stream through a new sampler. Skew 0 makes all
# classes equally frequent. A page without a running kernel has no sliders, only the picture above.

# %%
walkthrough.memory_sliders(settings.samples, size, settings.rho, settings.seed)

# %% [markdown] tags=["timed"]
# How long does that take? The next cell measures a redraw.

# %% tags=["timed"]
# %timeit -r 9 -n 1 walkthrough.memory_picture(settings.samples, settings.rho, size, skew=1.0)
