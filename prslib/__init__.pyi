# The public names and their modules, for editors, type checkers and `__init__.py`.
from .buffer import Buffer as Buffer
from .datasets import DATASETS as DATASETS
from .datasets import load_dataset as load_dataset
from .losses import LOSSES as LOSSES
from .memory import Memory as Memory
from .metrics import evaluate as evaluate
from .models import MODELS as MODELS
from .models.networks import make_model as make_model
from .previews import preview as preview
from .runs import configs as configs
from .runs import register as register
from .runs import run_all as run_all
from .samplers import SAMPLERS as SAMPLERS
from .samplers import Sampler as Sampler
from .samplers import check_sampler as check_sampler
from .samplers import make_sampler as make_sampler
from .statistics import compare as compare
from .statistics import scores as scores
from .train import METHODS as METHODS
from .train import Run as Run
from .train import RunConfig as RunConfig
from .train import run as run
from .trials import trial as trial

__version__: str
