"""Which files a command follows once it serves them."""

import asyncio
import os
from pathlib import Path

import pytest

from plait.cli.following import follow_files
from plait.compositor import Compositor
from plait.config.load import load
from plait.config.model import Config


async def follows(config: Config, given: list[str]) -> bool:
    """Does somebody look at the files from now on?"""
    async with Compositor(config) as compositor:
        before = asyncio.all_tasks()
        await follow_files(compositor, given)
        return asyncio.all_tasks() != before


async def test_files_are_followed_until_the_end(tmp_path: Path) -> None:
    file = tmp_path / "plait.json"
    file.write_text("{}")
    before = asyncio.all_tasks()
    assert await follows(load([file], os.environ, tmp_path), [str(file)])
    assert asyncio.all_tasks() == before


async def test_what_can_be_read_only_once_is_not_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert not await follows(Config(files=(str(pipe),)), [str(pipe)])


async def test_without_a_file_there_is_nothing_to_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not await follows(Config(), [])
