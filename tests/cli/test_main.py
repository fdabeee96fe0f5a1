import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import smoothlime
from smoothlime.cli import COMMANDS, main
from smoothlime.cli._words import as_typed


def test_version_and_help():
    runner = CliRunner()
    assert smoothlime.__version__ in runner.invoke(main, ["--version"]).output
    assert "error bars" in runner.invoke(main, ["--help"]).output


def test_the_command_is_installed():
    command = [sys.executable, "-c", "from smoothlime.cli import main; main(['--version'])"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"smoothlime, version {smoothlime.__version__}"


def test_help_lists_every_command_in_a_whole_sentence():
    listed = CliRunner().invoke(main, ["--help"]).output.partition("Commands:")[2].strip().splitlines()
    assert [line.split()[0] for line in listed] == list(COMMANDS)
    assert not any(line.endswith("...") for line in listed)
    assert all(line.endswith((".", "?")) for line in listed)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_for(name):
    command = main.get_command(click.Context(main), name)
    assert [each.name for each in command.params if isinstance(each, click.Option) and not each.help] == []


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("n_samples=256 is too few.", "--samples 256 is too few."),
        (
            "Explain it with output='margin', or use method='clime'",
            "Explain it with --output margin, or use --method clime",
        ),
        ("say which to explain with target=: '0', '1'", "say which to explain with --target: '0', '1'"),
        ("output_range=(lowest, highest) is needed", "--range lowest highest is needed"),
        ("method must be one of 'a'; got 'b'", "--method must be one of 'a'; got 'b'"),
        ("Raise max_samples, rtol or atol", "Raise --max-samples or --rtol"),
        ("Impute it, or list the feature in `fixed`", "Impute it, or list the feature in --fixed"),
        ("little; list it in fixed: Neighbourhood(..., fixed=['rtol'])", "little; list it in --fixed"),
        (
            "at position 0 X has 'a' and the model 'b'. Select the model's columns in its order: X[['b', 'a']...]",
            "at position 0 X has 'a' and the model 'b'. Name the model's columns in its order with --columns",
        ),
        (
            "which needs only predictions; `agreement` says more",
            "which needs only predictions; `smoothlime check` says more",
        ),
        # nor do names that the user gave change
        ("there is no file 'rtol=0.5/rows.csv'", "there is no file 'rtol=0.5/rows.csv'"),
        (
            "fixed names 'a', but the model's rows' features are ['max_samples', \"it's rtol\"]",
            "--fixed names 'a', but the model's rows' features are ['max_samples', \"it's rtol\"]",
        ),
        # what is no argument, or no option, stays as it is
        ("gradient_bound(model) computes it", "gradient_bound(model) computes it"),
        ("the model's output must be finite", "the model's output must be finite"),
        ("--rows must be a whole number", "--rows must be a whole number"),
        ("guarantee='certified' needs iid draws", "guarantee='certified' needs iid draws"),
    ],
)
def test_messages_speak_of_options(said, typed):
    names = ["--samples n_samples", "--output", "--method methods", "--target", "--range output_range", "--rtol"]
    names += ["--max-samples", "--gradient-bound", "--rows most", "--fixed"]
    command = click.Command("explain", params=[click.Option(each.split()) for each in names])
    assert as_typed(said, command) == typed
    assert as_typed(said, click.Command("other")) == said


def test_plan_names_the_options_that_are_missing():
    for more, message in (
        ([], "give either --eps, the error wanted, or --draws, to learn"),
        (["--eps", "0.1"], "--range lowest highest is needed to plan stein"),
        (["--eps", "0.1", "--range", "0", "1"], "--features, the number of features, is needed"),
    ):
        done = CliRunner().invoke(main, ["plan", "stein", *more])
        assert done.exit_code == 2
        assert f"smoothlime: {message}" in done.output


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["--version"]])
def test_help_for_a_full_disk_is_no_traceback(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "smoothlime", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "smoothlime: the result cannot be printed: No space left on device\n"


def test_a_narrow_code_page_replaces_what_it_lacks():
    command = [sys.executable, "-m", "smoothlime", "plan", "stein", "--eps", "0.05", "--features", "3"]
    command += ["--range", "0", "1"]
    done = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp437:strict"}, check=False
    )
    assert done.returncode == 0, done.stderr
