"""``prslib run``: one run from the shell."""

from prslib.cli import main
from prslib.experiments.store import Store
from prslib.training.config import RunConfig

FIELDS = ["run", "digits70tiny", "CRS", "--seed", "1", "--option", "batch_size=80"]


def test_one_run_is_trained_once_and_its_scores_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    config = RunConfig("digits70tiny", "CRS", seed=1, batch_size=80)
    assert main(FIELDS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["C-F1", "O-F1", "mAP"]
    assert any(line.startswith("overall") for line in lines)
    assert str(Store().path(config)) in lines[-1]
    scores = Store().load(config).scores
    last = scores[(scores["trained_tasks"] == 4) & (scores["task"] == "seen")]
    overall = last[(last["group"] == "overall") & (last["metric"] == "mAP")]["value"]
    assert f"{100 * overall.item():.1f}" in "\n".join(lines)
    assert main(FIELDS) == 0
    assert "training" not in capsys.readouterr().err
    for option, said in (("memory_size", "NAME=VALUE"), ("batch_size=ten", "ten")):
        assert main([*FIELDS[:3], "--option", option]) == 1
        assert said in capsys.readouterr().err
