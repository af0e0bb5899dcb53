# The public names and their modules, for editors, type checkers and `__init__.py`.
from prslib.datasets import DATASETS as DATASETS
from prslib.datasets import load_dataset as load_dataset
from prslib.experiments.store import Store as Store
from prslib.experiments.sweep import run_all as run_all
from prslib.memory import Memory as Memory
from prslib.models import MODELS as MODELS
from prslib.models.networks import make_model as make_model
from prslib.report.statistics import compare as compare
from prslib.samplers import SAMPLERS as SAMPLERS
from prslib.samplers import Sampler as Sampler
from prslib.samplers import make_sampler as make_sampler
from prslib.training.config import Run as Run
from prslib.training.config import RunConfig as RunConfig
from prslib.training.grids import configs as configs
from prslib.training.grids import configs_of as configs_of
from prslib.training.grids import paired as paired
from prslib.training.methods import METHODS as METHODS
from prslib.training.methods import register as register
from prslib.training.run import run as run

__version__: str
