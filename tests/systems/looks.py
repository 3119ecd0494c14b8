"""How pages look in headless Chromium: contrast, focus and size of controls, from what is rendered."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed: apt install chromium", allow_module_level=True)


def launch(playwright: Playwright) -> Browser:
    """Start Chromium without a window."""
    return playwright.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    )


#: Controls without a visible focus, or less than 24 pixels high; links in texts may be.
CONTROLS = """() => [...document.querySelectorAll('a, button, input, select, textarea, summary')]
    .filter(each => each.getClientRects().length && each.type !== 'hidden' && !each.closest('.skip'))
    .map(each => {
        each.focus({focusVisible: true});
        const style = getComputedStyle(each);
        const box = (each.closest('label') || each).getBoundingClientRect();
        const inText = each.matches('a') && !each.matches('.btn, .brand, nav a');
        const height = inText ? 99 : box.height;
        return [each.outerHTML.slice(0, 80), style.outlineStyle, style.outlineWidth, height];
    }).filter(([, style, width, height]) => style !== 'solid' || width !== '3px' || height < 24)"""
#: Every text with its colour and the first background behind it, and the borders of controls.
COLOURS = """() => {
    const solid = element => {
        for (let each = element; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (!colour.startsWith('rgba(0, 0, 0, 0') && colour !== 'transparent') return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const found = new Map();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode.textContent.trim(), parent = walker.currentNode.parentElement;
        if (!text || !parent.getClientRects().length || parent.closest('svg, option')) continue;
        const pair = [getComputedStyle(parent).color, solid(parent)];
        found.set(pair.join(), [text.slice(0, 40), ...pair]);
    }
    for (const each of document.querySelectorAll('input:not([type=hidden]), select, textarea, .btn')) {
        const pair = [getComputedStyle(each).borderTopColor, solid(each.parentElement)];
        if (each.getClientRects().length) found.set('border' + pair.join(), ['border', ...pair]);
    }
    return [...found.values()];
}"""


def contrast(front: str, behind: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        numbers = [float(each) for each in re.findall(r"[0-9.]+", colour)[:3]]
        # Chromium writes a mixed colour as color(srgb 0.9 0.95 0.95).
        channels = numbers if colour.startswith("color(srgb") else [each / 255 for each in numbers]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(front), luminance(behind)), reverse=True)
    return (high + 0.05) / (low + 0.05)
