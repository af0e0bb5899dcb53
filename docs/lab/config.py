"""JupyterLab's configuration for `make lab`: it opens the list of questions, without .py twins."""

from pathlib import Path

from jupyter_server.services.contents.manager import ContentsManager

HERE = Path(__file__).resolve().parent
c = get_config()  # noqa: F821
c.ServerApp.root_dir = str(HERE.parents[1] / "notebooks")
c.LabApp.default_url = "/lab/tree/start.md"
c.LabApp.app_settings_dir = str(
    HERE / "settings"
)  # shows Markdown as a page, not as its source
c.ContentsManager.hide_globs = [*ContentsManager.hide_globs.default(), "*.py"]
