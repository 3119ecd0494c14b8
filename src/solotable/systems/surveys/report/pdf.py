"""Print an HTML page as PDF, with Chromium or WeasyPrint if the machine has one of them."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from solotable.errors import SolotableError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
#: The limit of one print: long enough for a thousand photos, so that only a hang reaches it.
PRINT_SECONDS = 300


class NoPrinter(SolotableError):
    """The machine has no program that prints HTML as PDF, or it failed."""


def find_browser() -> str | None:
    """Return the path of Chromium or a browser made from it; None without one."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def print_pdf(page: str) -> bytes:
    """Return an HTML page as PDF, or raise NoPrinter. It blocks for seconds."""
    browser = find_browser()
    if browser is not None:
        return _print_with_browser(browser, page)
    try:
        weasyprint: Any = importlib.import_module("weasyprint")
        # The page comes from stored texts: it loads nothing but the pictures that it holds.
        fetcher = importlib.import_module("weasyprint.urls").URLFetcher(allowed_protocols=("data",))
    except (ImportError, OSError, AttributeError):  # OSError: a library of the system is missing
        raise NoPrinter(
            "Cannot print a PDF: neither Chromium nor WeasyPrint 68 or newer is installed. Install one "
            "(for instance: apt install chromium, or pip install weasyprint), or write report.html and print "
            "it with a browser."
        ) from None
    document: bytes = weasyprint.HTML(string=page, url_fetcher=fetcher).write_pdf()
    return document


def _print_with_browser(browser: str, page: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="solotable-report-", ignore_cleanup_errors=True) as folder:
        source, target = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page, encoding="utf-8")
        arguments = [
            *(browser, "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *("--no-pdf-header-footer", f"--user-data-dir={folder}/profile"),
            # The page needs no host.
            "--host-resolver-rules=MAP * ~NOTFOUND",
            *_sandbox(),
            f"--print-to-pdf={target}",
            source.as_uri(),
        ]
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, without a shell
                arguments, capture_output=True, timeout=PRINT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoPrinter(f"{browser} did not print the report: {error}") from error
        if done.returncode or not target.exists():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise NoPrinter(f"{browser} did not print the report: {''.join(last) or done.returncode}")
        return target.read_bytes()


def _sandbox() -> list[str]:
    # Chromium refuses to start its sandbox as root. The page has no scripts, and its policy allows none.
    return ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
