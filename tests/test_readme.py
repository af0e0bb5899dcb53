import pandas as pd
import pytest

from prslib import readme
from prslib.report import GROUPS, METRICS


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with a README and the main table of two methods."""
    cells = pd.DataFrame(
        [
            ("digits70seq", "COCOseq", method, "score", group, metric, mean, sd, published)
            for method, mean, sd, published in [
                ("CRS", 54.57, 0.61, 50.2),
                ("OCDM", 56.04, None, None),
            ]
            for group in GROUPS
            for metric in METRICS
        ],
        columns=[
            "dataset",
            "stands_for",
            "method",
            "measure",
            "group",
            "metric",
            "mean",
            "sd",
            "published",
        ],
    )
    folder = tmp_path / "figures" / "quick"
    folder.mkdir(parents=True)
    cells.to_csv(folder / "main_table.csv", index=False)
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    monkeypatch.setattr(readme, "project_root", lambda: tmp_path)
    (tmp_path / "README.md").write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n")
    return tmp_path


def test_the_table_is_written_between_its_markers(checkout):
    readme.renew()
    text = (checkout / "README.md").read_text()
    assert text.startswith(f"before\n{readme.BEGIN}\n| digits70seq [COCOseq] | overall C-F1 |")
    assert text.endswith(f"{readme.END}\nafter\n")
    assert "old" not in text
    assert "| CRS | 54.6 ± 0.6 [50.2] |" in text
    assert "| OCDM | 56.0 |" in text
    readme.renew()
    assert (checkout / "README.md").read_text() == text


def test_a_readme_without_markers_is_left_alone(checkout):
    (checkout / "README.md").write_text("mine")
    with pytest.raises(ValueError, match="put them back"):
        readme.renew()
    assert (checkout / "README.md").read_text() == "mine"
