import subprocess
import sys

from click.testing import CliRunner

import smoothlime
from smoothlime.cli import main


def test_version_and_help():
    runner = CliRunner()
    assert smoothlime.__version__ in runner.invoke(main, ["--version"]).output
    assert "error bars" in runner.invoke(main, ["--help"]).output


def test_the_command_is_installed():
    command = [sys.executable, "-c", "from smoothlime.cli import main; main(['--version'])"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"smoothlime, version {smoothlime.__version__}"
