"""Tests that keep the house true: what every file must have, and what none may hold."""
