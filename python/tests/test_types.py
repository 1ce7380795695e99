"""The stub says what the module holds, and the package is typed."""

import subprocess
import sys
from importlib.resources import files
from typing import Literal, get_origin

import restp


def mypy(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=300)


def test_the_stub_agrees_with_the_module():
    done = mypy("mypy.stubtest", "restp._restp", "--ignore-disjoint-bases")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed_throughout():
    assert files("restp").joinpath("py.typed").is_file()
    done = mypy("mypy", "--strict", "--ignore-missing-imports", "-p", "restp")
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_exported_exists_and_is_explained():
    for name in restp.__all__:
        thing = getattr(restp, name)
        assert thing.__doc__ or get_origin(thing) is Literal or isinstance(thing, str), name
