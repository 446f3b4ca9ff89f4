"""The network fails in the middle of a download: failures that may pass are tried again, others are not."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import Ledger
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.needs import needs
from tests.support.serving import Answers, serving

pytestmark = needs("system", sys.platform == "linux", "py-rattler-build words errors by system")
ROW = f"{HERE.name}_cpu_py3.11"


def archive() -> bytes:
    """A source archive, large enough to break off in."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("more/data.bin"), io.BytesIO())
        entry = tarfile.TarInfo("more/large.bin")
        entry.size = 300_000
        tar.addfile(entry, io.BytesIO(bytes(range(256)) * 1200))
    return buffer.getvalue()


@contextmanager
def served(content: bytes, *, cut_off: int = 0, status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server's address and its requests; the given number of first answers break off in the middle."""
    asked: list[str] = []

    class Handler(Answers):
        def respond(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if len(asked) <= cut_off else content)
            self.close_connection = True

    with serving(Handler) as address:
        yield f"{address}/more.tar", asked


def with_source(feedstock: TinyFeedstock, url: str, digest: str) -> None:
    """Add a source to the recipe."""
    more = f"source:\n  - path: ../src\n  - url: {url}\n    sha256: {digest}\n    target_directory: more"
    feedstock.edit("recipe/recipe.yaml", "source:\n  path: ../src", more)


def attempts(feedstock: TinyFeedstock) -> list[tuple[str, int, str]]:
    """Output, attempt and result of each build in the ledger."""
    with Ledger(feedstock.artifacts / "ledger.sqlite") as ledger:
        return [(record.output, record.attempt, record.result) for record in ledger.builds()]


def test_a_download_that_breaks_off_is_tried_again_and_the_ledger_has_both_attempts(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    content = archive()
    with served(content, cut_off=1) as (url, asked):
        with_source(feedstock, url, sha256(content).hexdigest())
        run = feedstock.build(ROW)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "the network failed: attempt 2 follows" in run.stdout
    assert attempts(feedstock)[:2] == [("libtiny", 1, "failed"), ("libtiny", 2, "done")]
    assert [result for _, _, result in attempts(feedstock)[2:]] == ["done"]
    assert len(asked) == 2  # the downloaded source serves the other outputs too


@pytest.mark.parametrize(
    ("status", "digest", "why"),
    [(404, None, "404 Not Found"), (200, "0" * 64, "sha256 checksum validation failed")],
)
def test_what_fails_the_same_way_again_is_tried_once(
    feedstock: TinyFeedstock, status: int, digest: str | None, why: str
) -> None:
    content = archive()
    with served(content, status=status) as (url, asked):
        with_source(feedstock, url, digest or sha256(content).hexdigest())
        run = feedstock.build(ROW)
    assert run.returncode == 1
    assert why in run.stdout
    assert attempts(feedstock) == [("libtiny", 1, "failed")]
    assert len(asked) == 1


def test_a_source_archive_of_pypi_that_does_not_answer_comes_from_the_index_of_pip(
    feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    feedstock.keep_outputs(1)
    index, content = tmp_path / "simple/demo-more", archive()
    index.mkdir(parents=True)
    (index / "demo_more-1.0.tar").write_bytes(content)
    digest = sha256(content).hexdigest()
    (index / "index.html").write_text(f'<a href="demo_more-1.0.tar#sha256={digest}">x</a>')
    with_source(feedstock, "https://pypi.org/packages/source/d/demo-more/demo_more-1.0.tar", digest)
    nothing_listens = "http://127.0.0.1:9"
    machine = {"HTTPS_PROXY": nothing_listens, "https_proxy": nothing_listens, "PIP_CONFIG_FILE": os.devnull}
    run = feedstock.build(
        ROW, environment={**machine, "PIP_INDEX_URL": index.parent.as_uri(), "PIP_EXTRA_INDEX_URL": ""}
    )
    assert run.returncode == 0, run.stdout + run.stderr
