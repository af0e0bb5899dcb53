"""A wrapper for River's classifiers that replays samples from a balanced memory.

In River, the class would be part of ``river/imblearn/``; it has the same form as the
wrappers in that folder.
"""

import copy
import random

from prs_sampling import PRSSampling
from river import base


class PRSReplay(base.Wrapper, base.Classifier):
    """Experience replay from a memory filled by Partitioning Reservoir Sampling.

    After each new observation, the classifier also learns from a few stored observations.
    The class shares in the memory stay close to their targets, so that rare classes are
    replayed more often than they occur in the stream. The target of an observation is a
    class, or a dict of booleans if an observation can have several classes.

    Parameters
    ----------
    classifier
        A classifier, or a multi-label classifier.
    size
        Number of observations in memory.
    n_replay
        Number of stored observations to learn after each new one.
    rho
        0 for equal class shares in the memory, 1 for the class shares in the stream.
    seed
        Random seed for reproducibility.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing

    >>> model = preprocessing.StandardScaler() | PRSReplay(
    ...     linear_model.LogisticRegression(), size=50, n_replay=2, seed=42
    ... )
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC())
    ROCAUC: 93.55%

    References
    ----------
    [^1]: [Imbalanced Continual Learning with Partitioning Reservoir Sampling](https://arxiv.org/abs/2009.03632)

    """

    def __init__(
        self,
        classifier: base.Classifier,
        size: int = 100,
        n_replay: int = 1,
        rho: float = 0.0,
        seed: int | None = None,
    ):
        self.classifier = classifier
        self.size = size
        self.n_replay = n_replay
        self.rho = rho
        self.seed = seed
        self._rng = random.Random(seed)
        self._select = PRSSampling(size, rho, seed)
        self._numbers: dict = {}  # of the classes seen so far
        self._n_seen = 0
        self._memory: list = []

    @property
    def _wrapped_model(self):
        return self.classifier

    @classmethod
    def _unit_test_params(cls):
        from river import linear_model

        yield {"classifier": linear_model.LogisticRegression(), "seed": 42}

    def predict_proba_one(self, x, **kwargs):
        return self.classifier.predict_proba_one(x, **kwargs)

    def predict_one(self, x, **kwargs):
        return self.classifier.predict_one(x, **kwargs)

    def learn_one(self, x, y, **kwargs):
        self.classifier.learn_one(x, y, **kwargs)
        n_replay = min(self.n_replay, len(self._memory))
        for old_x, old_y in self._rng.sample(self._memory, n_replay):
            self.classifier.learn_one(old_x, old_y)
        names = [name for name in y if y[name]] if isinstance(y, dict) else [y]
        if not names:
            return
        for name in names:
            self._numbers.setdefault(name, len(self._numbers))
        labels = [name in names for name in self._numbers]
        slot = self._select(self._n_seen, labels)
        self._n_seen += 1
        if slot == len(self._memory):
            self._memory.append(None)
        if slot >= 0:
            self._memory[slot] = copy.deepcopy((x, y))
