"""`build` in a folder without a feedstock."""

import sys
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock import folder
from tests.support import command
from tests.support.paths import EXAMPLES, ROOT

SCRIPT = [sys.executable, "-m", "feedstock_tools.cli.build_locally"]
#: The same where its modules have been imported.
CALL = "from feedstock_tools.cli.build_locally import main; main()"


def test_without_a_feedstock_build_names_the_example_and_how_to_build_it(tmp_path: Path) -> None:
    run = command.run(command.tool("build", "linux_64_cuda11.2"), tmp_path)
    assert run.returncode == 2
    assert f"{tmp_path}: there is no feedstock in this folder" in run.stderr
    script = f"python3 {ROOT / 'build-locally.py'}"
    assert f"{script} --feedstock {EXAMPLES / 'gpuprobe'} linux_64_cuda11.2" in run.stderr
    assert not list(tmp_path.iterdir())


def test_the_script_takes_the_example_at_the_top_of_its_checkout_alone(tmp_path: Path) -> None:
    listed = command.run(command.patched(CALL, "--list", "--output-dir", str(tmp_path / "out")), ROOT)
    assert listed.returncode == 0, listed.stderr
    assert f"There is no feedstock in {ROOT}: building the example {EXAMPLES / 'gpuprobe'}" in listed.stderr
    assert "linux_64_cuda11.2" in listed.stdout
    assert command.run([*SCRIPT, "--list"], tmp_path).returncode == 2
    assert command.run(command.tool("build", "--list"), ROOT).returncode == 2


def test_the_example_of_an_installation_is_copied_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "data_folder", lambda name: tmp_path / "_data" / name)
    with pytest.raises(InputError) as raised:
        folder.find_or_example(None, tmp_path, folder.example_of_checkout(tmp_path))
    hint = str(raised.value.mistakes[0].hint)
    assert f"copy {tmp_path / '_data' / 'examples' / 'gpuprobe'} here" in hint
    assert "feedstock-tools build ./gpuprobe linux_64_cuda11.2" in hint
