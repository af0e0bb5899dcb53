"""The numbers of README and docs, which `docs/renew.py` writes."""

from prslib.paths import project_root


def test_all_numbers_are_up_to_date_and_stand_between_markers(program, monkeypatch):
    monkeypatch.delenv("PRSLIB_FIGURES", raising=False)
    renew = program("renew")
    texts = renew.renewed()
    for page, text in texts.items():
        assert page.read_text("utf-8") == text, "run `python docs/renew.py`"
    names = {
        name for text in texts.values() for _, name, _ in renew.BLOCK.findall(text)
    }
    assert names == set(renew.WRITTEN)
    notebooks = {file.stem for file in (project_root() / "notebooks").glob("*.ipynb")}
    said = renew.answers()
    assert set(said) == notebooks
    assert {name for name, text in said.items() if len(text.split()) > 25} == set()
