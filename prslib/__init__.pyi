# The public names and their modules, for editors, type checkers and `__init__.py`.
from .buffer import Buffer as Buffer
from .datasets import DATASETS as DATASETS
from .datasets import load_dataset as load_dataset
from .experiments.store import Store as Store
from .experiments.sweep import run_all as run_all
from .losses import LOSSES as LOSSES
from .losses import Loss as Loss
from .losses.checking import check_loss as check_loss
from .memory import Memory as Memory
from .models import MODELS as MODELS
from .models.networks import make_model as make_model
from .previews import preview as preview
from .samplers import SAMPLERS as SAMPLERS
from .samplers import Sampler as Sampler
from .samplers import make_sampler as make_sampler
from .statistics import compare as compare
from .training.config import Run as Run
from .training.config import RunConfig as RunConfig
from .training.grids import configs as configs
from .training.grids import configs_of as configs_of
from .training.grids import paired as paired
from .training.methods import METHODS as METHODS
from .training.methods import register as register
from .training.run import run as run

__version__: str
