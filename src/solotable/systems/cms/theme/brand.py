"""The brand colours of a site: from one colour, readable ones for the light and the dark scheme."""

from __future__ import annotations

import colorsys
import re

DEFAULT = "#9c3f24"
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_RED, _GREEN, _BLUE = (0.2126, 0.7152, 0.0722)
#: The backgrounds of the theme, on which links stand: page and tinted sections.
_LIGHT = ("#fdfbf8", "#f5f0e9")
_DARK = ("#181513", "#221e1a", "#26211d")
_WHITE, _BLACK = "#ffffff", "#1b1210"
#: WCAG 2 wants 4.5 for texts; on a dark page, a bright colour is easier to read with more.
_ON_LIGHT, _ON_DARK = 4.5, 7.0


def is_colour(text: object) -> bool:
    """Return whether a text is a colour as `#rrggbb`."""
    return isinstance(text, str) and _COLOUR.fullmatch(text) is not None


def brand_css(colour: str) -> str:
    """Return the stylesheet of a brand colour: every text in it has a contrast of 4.5 or more.

    >>> brand_css("#9c3f24")
    ':root{--brand:#9c3f24;--on-brand:#ffffff;--brand-dark:#e39a85;--on-brand-dark:#1b1210}\\n'
    """
    light, dark = _darken(colour), _lighten(colour)
    names = {"brand": light, "on-brand": _on(light), "brand-dark": dark, "on-brand-dark": _on(dark)}
    return ":root{" + ";".join(f"--{name}:{value}" for name, value in names.items()) + "}\n"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _darken(colour: str) -> str:
    return _readable(colour, _LIGHT, _ON_LIGHT, -0.01)


def _lighten(colour: str) -> str:
    return _readable(colour, _DARK, _ON_DARK, 0.01)


def _readable(colour: str, backgrounds: tuple[str, ...], least: float, step: float) -> str:
    """Return the colour, or the nearest lightness of it that is readable on all backgrounds."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(colour))
    found = colour.lower()
    while min(contrast(found, each) for each in backgrounds) < least:
        lightness = min(max(lightness + step, 0.0), 1.0)
        found = _hex(colorsys.hls_to_rgb(hue, lightness, saturation))
    return found


def _on(colour: str) -> str:
    return max((_WHITE, _BLACK), key=lambda each: contrast(each, colour))


def _channels(colour: str) -> tuple[float, float, float]:
    return tuple(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))  # type: ignore[return-value]  # three


def _hex(channels: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(each * 255):02x}" for each in channels)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
    return _RED * linear[0] + _GREEN * linear[1] + _BLUE * linear[2]
