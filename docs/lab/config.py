"""JupyterLab's configuration for `make lab`: it opens the list of questions."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
c = get_config()  # noqa: F821
c.ServerApp.root_dir = str(HERE.parents[1])  # notebooks link to pages and modules
c.ServerApp.allow_root = True  # in a container
c.ServerApp.kernel_spec_manager_class = "prslib.report.native.Specs"
c.LabApp.default_url = "/lab/tree/notebooks/start.md"
c.LabApp.app_settings_dir = str(
    HERE / "settings"
)  # shows Markdown as a page, not as its source
