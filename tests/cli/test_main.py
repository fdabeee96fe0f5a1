import inspect
import os
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import smoothlime
import smoothlime.paper.run
from smoothlime.cli import COMMANDS, main
from smoothlime.cli._messages import naming_option
from smoothlime.errors import InvalidArgument


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
    ("argument", "message", "printed"),
    [
        ("n_samples", "n_samples must be a whole number; got 'x'", "--n-samples must be a whole number; got 'x'"),
        ("n_samples", "n_samples=256 is too few", "--n-samples=256 is too few"),
        ("target", "target 'a' is not an output", "--target 'a' is not an output"),
        ("method", "method must be one of 'a'; got 'b'", "--method must be one of 'a'; got 'b'"),
        ("methods", "leave method 'a' out", "--method: leave method 'a' out"),
        ("rows", "rows must be a whole number", "--rows must be a whole number"),
        ("max_samples", "give n_samples or max_samples", "--max-samples: give n_samples or max_samples"),
        # what is no option, or belongs to no argument, stays as it is
        ("draws", "draws must be one of 'shared'", "draws must be one of 'shared'"),
        ("X", "X must be finite", "X must be finite"),
        (None, "n_samples of the model are few", "n_samples of the model are few"),
    ],
)
def test_errors_name_the_option(argument, message, printed):
    names = ["--n-samples n_samples", "--method methods", "--target", "--max-samples", "--rows most"]
    command = click.Command("explain", params=[click.Option(each.split()) for each in names])
    assert naming_option(InvalidArgument(message, argument=argument), command) == printed


def test_plan_names_the_options_that_are_missing():
    for more, message in (
        ([], "--eps: give either eps, the error wanted, or n_samples, to learn"),
        (["--eps", "0.1"], "--output-range, the lowest and highest output, is needed to plan stein"),
        (["--eps", "0.1", "--output-range", "0", "1"], "--d, the number of features, is needed"),
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
    command = [sys.executable, "-m", "smoothlime", "plan", "stein", "--eps", "0.05", "--d", "3"]
    command += ["--output-range", "0", "1"]
    done = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp437:strict"}, check=False
    )
    assert done.returncode == 0, done.stderr


FORMER = {
    "explain": {"--samples": "--n-samples"},
    "check": {"--samples": "--n-samples", "--range": "--output-range"},
    "plan": {"--draws": "--n-samples", "--features": "--d", "--range": "--output-range"},
    "bench": {"--method": "--methods", "--design": "--designs"},
}


def parsed(name, *words):
    command = main.get_command(click.Context(main), name)
    required = {"explain": ["model", "table"], "check": ["model", "table"], "plan": ["stein"]}
    return command.make_context(name, [*required.get(name, ["model", "--data", "table"]), *words]).params


@pytest.mark.parametrize(
    ("name", "old", "new"), [(n, old, new) for n, each in FORMER.items() for old, new in each.items()]
)
def test_former_names_of_options_work_and_are_not_shown(name, old, new):
    value = {"--output-range": ["0", "1"], "--methods": ["clime"], "--designs": ["iid"]}.get(new, ["7"])
    given = parsed(name, new, *value)
    assert given == parsed(name, old, *value)
    assert given != parsed(name)
    argument = new.removeprefix("--").replace("-", "_")
    assert argument in given  # the option is the name of its argument
    shown = CliRunner().invoke(main, [name, "--help"]).output
    assert new in shown
    assert not re.search(rf"{old}(?![\w-])", shown)
    wrong = CliRunner().invoke(main, [name, *(["stein"] if name == "plan" else ["a", "b"]), old])
    assert f"Option '{old}' requires" in wrong.output  # as it was typed


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "bench"])
def test_options_are_called_like_their_arguments(name):
    own = {"reproduce": smoothlime.paper.run.reproduce, "plan": smoothlime.plan}
    command = main.get_command(click.Context(main), name)
    asked = [own[name]] if name in own else [smoothlime.explain, smoothlime.agreement, smoothlime.certify]
    arguments = {each for function in asked for each in inspect.signature(function).parameters}
    for each in command.params:
        if isinstance(each, click.Option) and each.name in arguments:
            assert f"--{each.name.replace('_', '-')}" in each.opts


def test_a_wrong_value_names_the_option_in_its_new_words():
    done = CliRunner().invoke(main, ["plan", "stein", "--eps", "0.1", "--features", "many"])
    assert done.exit_code == 2
    assert "Invalid value for '--d': 'many' is not a valid integer" in done.output
