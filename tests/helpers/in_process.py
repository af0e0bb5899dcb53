"""Notebooks executed in this process, which has imported everything: a kernel takes seconds."""

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat.v4 import new_output
from papermill.engines import Engine
from traitlets.config import Config

NO_HISTORY = Config(HistoryManager={"enabled": False})


class InProcess(Engine):
    """Run the cells of a notebook from top to bottom in a shell of its own."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **_options):
        """Execute it; the trap lets the results of cells be captured, too."""
        InteractiveShell.clear_instance()
        shell = InteractiveShell.instance(config=NO_HISTORY)
        for cell in nb_man.nb.cells:
            if cell.cell_type == "code":
                with shell.display_trap, capture_output() as captured:
                    result = shell.run_cell(cell.source)
                result.raise_error()
                cell.outputs = outputs(captured)
        InteractiveShell.clear_instance()


def outputs(captured):
    """Return what a cell displayed and printed as a notebook has it."""
    shown = [
        new_output("display_data", one.data, metadata=one.metadata)
        for one in captured.outputs
    ]
    return [*shown, new_output("stream", text=captured.stdout + captured.stderr)]
