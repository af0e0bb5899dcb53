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
# Partitioning Reservoir Sampling, told on forty samples. The paper's Figure 2 gives the overview
# and its Algorithm 1 the order of the steps: the *partition* says how much of the memory each class
# should have, *sample-in* whether a new sample enters, *sample-out* which one makes room for it.
# Every number below comes from the sampler itself: `sampler.explain(label)` says what it would
# decide and why, without changing anything, by the functions that `sampler.place(labels)` runs.
#
# At the end the same sampler takes a stream as long as COCOseq while you move its sliders.
#
# *A quarter of a minute; ten seconds more the first time, for the compiler. No network is trained.*

# %% tags=["parameters"]
profile: str = "quick"  # smoke, quick, seeds or paper: whose folder the figures go to
rho: float = 0.0  # power of allocation on the forty samples, any finite number
memory_size: int = 12  # samples in memory on the forty samples
seed: int = 73  # of the streams and the samplers
rhos: list = [-0.5, 0.0, 0.5, 1.0]  # powers of allocation set side by side
samples: int = 35000  # length of the stream behind the sliders, at least 200

# %%
from prslib.report import notebook

settings = notebook.settings("walkthrough", globals())
wanted = []  # nothing is trained here
settings

# %% [markdown]
# ## Forty samples
#
# Five classes, A to E, from frequent to rare; about every fourth sample carries two labels, joined
# by a line. The sampler sees them one by one. The first ones fill the memory (Algorithm 1, lines 6
# to 9). From then on a sample is dropped, or it enters and overwrites another, and may be
# overwritten itself. The seed was picked so that one removal shows every case below.

# %%
import matplotlib.pyplot as plt

from prslib import plots
from prslib.report import walkthrough
from prslib.report import walkthrough as telling

plt.style.use(plots.STYLE)
stream = walkthrough.forty_samples(settings.seed)
steps = walkthrough.walk(stream, settings.memory_size, settings.rho, settings.seed)
fates = walkthrough.fates(steps)
figure, ax = plt.subplots(figsize=(8, 3))
plots.plot_fates(fates, settings.memory_size, ax)
settings.save(figure, fates, "stream")

# %% [markdown]
# ## The partition (Equation 1)
#
# Class $i$ was seen $n_i$ times, so its share is $p_i = n_i^\rho / \sum_j n_j^\rho$ and its quota
# $m_i = m\,p_i$. With $\rho = 0$ all classes get the same; with $\rho = 1$ each gets what it has of
# the stream, as with conventional reservoir sampling; in between lies the compromise. A power below
# 0, which the paper uses for COCOseq (-0.03), gives rare classes more than frequent ones. The lines
# are the quota, scaled to the number of labels in memory as Equation 3 does; the marks are what
# each sampler holds after the forty samples. A class cannot hold more than came.

# %%
partition = walkthrough.quotas(stream, settings.memory_size, settings.rhos, settings.seed)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), width_ratios=[2, 3])
plots.plot_frequencies(partition, axes[0])
plots.plot_quotas(partition, axes[1]).set_title("after forty samples, one seed")
settings.save(figure, partition, "partition")

# %% [markdown]
# ## Sample-in (Equation 2)
#
# A new sample enters with probability $s = \sum_i w_i\, m_i / n_i$, cut at 1. Over its labels the
# weights $w_i$ are the softmax of $-n_i$: nearly all the weight lies on its rarest label, so a
# sample has the chance of its rarest class, whatever company that class keeps. The letters above
# the stems are the sample's labels; the table takes one sample with several labels apart.

# %%
from IPython.display import Markdown, display

figure, ax = plt.subplots(figsize=(8, 3.2))
plots.plot_acceptance(fates, settings.memory_size, ax)
settings.save(figure, fates[fates["sample"] > settings.memory_size], "sample_in")
asked = telling.most_labelled(steps, settings.memory_size)
terms = telling.contributions(steps[asked])
settings.save(None, terms, "sample_in_terms")
display(Markdown(telling.tell_entry(steps, asked)), terms.round(4))

# %% [markdown]
# ## Sample-out (Equations 3 to 5)
#
# The memory is full and the sample has entered: which one leaves? The surplus
# $\delta_i = l_i - p_i \sum_j l_j$ says how many labels a class holds above its target. One class
# is drawn among those with a surplus, with probability softmax$(\delta_i)$ (left: the percentages;
# the class that was drawn is orange). Of its members only those with the fewest labels of classes
# in need stay candidates, the set $K$ (the largest $\neg y \cdot q$, where $q_i = 1$ for a class
# without a surplus). Of $K$ that one goes without which the memory is closest to the target
# (right; members outside $K$ stand on the upper edge, since their distance is not asked for).
# Equals are drawn by lot: the paper does not say how, and taking the first slot would overwrite a
# class's newest member again and again.

# %%
shown = telling.most_telling(steps)
surpluses, members = telling.surpluses(steps[shown]), telling.candidates(steps[shown])
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
plots.plot_surpluses(surpluses, telling.shrunk_class(steps[shown]), axes[0])
plots.plot_candidates(members, axes[1])
settings.save(figure, members, "sample_out")
settings.save(None, surpluses, "surplus")
display(Markdown(telling.tell_removal(steps, shown)), members)

# %% [markdown]
# ## All forty
#
# How far is the memory from its target, sample after sample? The distance is the one that
# Equation 5 makes small: the surplus of every class, without its sign, summed up.

# %%
distances = walkthrough.distances(steps)
figure, ax = plt.subplots(figsize=(8, 2.8))
plots.plot_distances(distances, settings.memory_size, ax)
settings.save(figure, distances, "distance")

# %% [markdown]
# ## A long stream
#
# The same sampler on a stream as long as COCOseq (35 072 images, 70 classes, 1.22 labels an image)
# and a memory of the same share, 2000 for 35 000. The stream is drawn at random, a class's chance
# falling with its rank.

# %%
from prslib.report.walkthrough_sliders import LiveMemory

live = LiveMemory(settings.samples, seed=settings.seed)
long = walkthrough.skewed_stream(settings.samples, 70, skew=1.0, seed=settings.seed)
kept = walkthrough.quotas(long, live.usual_size, settings.rhos, settings.seed)
figure, ax = plt.subplots(figsize=(9, 3.8))
plots.plot_quotas(kept, ax, letters=False).set_title(f"memory of {live.usual_size:,}, one seed")
settings.save(figure, kept, "long_stream")
display(Markdown(telling.tell_quotas(kept)))

# %% [markdown]
# Now move the sliders. Every move sends the whole stream through a new sampler; skew 0 makes all
# classes equally frequent. (On a page without a running kernel there are no sliders, and the
# picture above stands for them.)

# %%
live.widget(rho=settings.rho)

# %% [markdown]
# How long does that take? The axes are drawn once and kept as pixels, and a redraw only puts the
# three rows of marks on top. The time of one redraw, measured here over 27 places of the sliders:

# %%
Markdown(live.tell_speed())
