"""The accent of a site: any hue becomes readable, because its lightness is bounded (OKLCH).

The build writes the resulting colors, so every browser shows the ones that were checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

#: The backgrounds of `site.css`. Text on an accent is white, or darker than the dark background.
_LIGHT = "#ffffff"
_DARK = "#141716"
#: WCAG 2.2, 1.4.3: the contrast of text.
LEAST_CONTRAST = 4.5
_STEP = 0.01

Rgb = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accent:
    """An accent as readers see it, in light and in dark pages."""

    chosen: str
    light: str
    dark: str


def readable(color: str) -> Accent:
    """Return the colors of an accent that text can have in light and in dark pages.

    >>> readable("#0f6b6b").light, readable("#ffff00").light
    ('#0f6b6b', '#6f6800')
    """
    lightness, chroma, hue = _to_oklch(_parse(color))
    light, dark = min(lightness, 0.5), 0.8
    while contrast(found := _hex(_to_rgb(light, chroma, hue)), _LIGHT) < LEAST_CONTRAST:
        light -= _STEP
    while contrast(bright := _hex(_to_rgb(dark, min(chroma, 0.12), hue)), _DARK) < LEAST_CONTRAST:
        dark += _STEP
    return Accent(chosen=color.lower(), light=found, dark=bright)


def accent_css(color: str) -> str:
    """Return `accent.css` of a site."""
    accent = readable(color)
    return (
        "/* Written by the build from config.accent_color, after the contrast check. */\n"
        f":root {{ --accent: {accent.chosen}; --strong: {accent.light}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ --strong: {accent.dark}; }} }}\n"
        "@media print { :root { --strong: #000; } }\n"
    )


def contrast(color: str, other: str) -> float:
    """Return the contrast of two colors as WCAG computes it, from 1 to 21."""
    darker, lighter = sorted(_luminance(_parse(each)) for each in (color, other))
    return (lighter + 0.05) / (darker + 0.05)


def _parse(color: str) -> Rgb:
    red, green, blue = (int(color[at:end], 16) / 255 for at, end in pairwise((1, 3, 5, 7)))
    return red, green, blue


def _hex(rgb: Rgb) -> str:
    return "#" + "".join(f"{round(min(max(each, 0.0), 1.0) * 255):02x}" for each in rgb)


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _gamma(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


def _luminance(rgb: Rgb) -> float:
    red, green, blue = map(_linear, rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _to_oklch(rgb: Rgb) -> tuple[float, float, float]:
    """Return lightness, chroma and hue, with the matrices of CSS Color 4."""
    red, green, blue = map(_linear, rgb)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    lightness = 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short
    a = 1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short
    b = 0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short
    return lightness, math.hypot(a, b), math.atan2(b, a)


def _to_rgb(lightness: float, chroma: float, hue: float) -> Rgb:
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    red, green, blue = (_gamma(max(each, 0.0)) for each in linear)
    return red, green, blue
