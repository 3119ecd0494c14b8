"""A database of surveys, and its console as an app or in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from solotable import Table, connect
from solotable._connect import open_engine
from solotable._entities.patterns.cost import Prices
from solotable._protocol.wire import call
from solotable.console import Console, ConsoleSettings, create_app, open_console
from solotable.urls import Url

from .models import Section, Setting, Survey, surveyor

PRICES = Prices(
    region="us-east-1",
    date="2026-11-01",
    read_per_million=0.125,
    write_per_million=0.625,
    storage_per_gb_month=0.25,
)
HOME = "http://127.0.0.1:8001"
STREETS = ("12 Main Street", "Flat 3, 88 Harbour Road", "The Old Forge", "31 Station Approach")
PARTS = ("roof", "walls", "loft", "cellar")


def fill(path: Path, surveys: int = 4) -> None:
    """Write surveys with sections, settings, and one item that no model claims."""
    with connect(f"sqlite:///{path}", surveyor) as database:
        acme = database.tenant("acme")
        for number in range(surveys):
            acme.put(
                Survey(
                    survey_id=f"s-{1042 + number}",
                    title=STREETS[number % len(STREETS)],
                    status=("draft", "in_progress", "completed")[number % 3],
                    owner=("ana@acme.example", "ben@acme.example")[number % 2],
                )
            )
            for order, part in enumerate(PARTS, 1):
                acme.put(
                    Section(
                        survey_id=f"s-{1042 + number}",
                        section_id=part,
                        name=part.title(),
                        order=order,
                        condition=("Fair", "Good", "Poor", "N/A")[order - 1],
                        notes="Clay tiles, ridge loose on the north side" if part == "roof" else "",
                        area=Decimal("148.20000000000000000000000000000000001"),
                        photos={"img-77a1", "img-77a2"},
                        measurements={"pitch": Decimal("42.5")},
                    )
                )
        database.tenant("globex").put(Survey(survey_id="g-1", title="Globex Tower"))
        roof = acme.get(Section, survey_id="s-1042", section_id="roof")
        assert roof is not None
        acme.put(roof.model_copy(update={"condition": "Poor", "notes": "Two tiles slipped"}))
        database.put(Setting(name="language", value="en"))
        call(
            database.engine,
            "PutItem",
            {"TableName": "SurveyorData", "Item": {"PK": {"S": "TENANT#acme"}, "SK": {"S": "SURVEYCFG#1"}}},
        )


class Site:
    """A console over a file, and a client of it."""

    def __init__(
        self,
        path: Path,
        *,
        models: bool = True,
        write: bool = False,
        tables: Sequence[Table] = (surveyor,),
        **settings: Any,
    ) -> None:
        url = Url.parse(f"sqlite:///{path}")
        self.engine = open_engine(url)
        chosen = ConsoleSettings(prices=PRICES, write=write, models="models.py" if models else "", **settings)
        self.console: Console = open_console(self.engine, url, tables if models else (), chosen)
        self.app = create_app(self.console)
        self.client = TestClient(self.app, base_url=HOME, follow_redirects=True)

    def get(self, path: str, **headers: str) -> Any:
        """Return the answer of a page; it must succeed."""
        found = self.client.get(path, headers=headers)
        assert found.status_code == 200, (path, found.status_code, found.text[-2000:])
        return found

    def json(self, path: str) -> Any:
        """Return the data of a page."""
        return self.get(path).json()

    def post(self, path: str, **fields: str) -> Any:
        """Send a form with the token, as the console's own page does."""
        data = {"token": self.console.gate.token, **fields}
        return self.client.post(path, data=data, headers={"origin": HOME})

    def close(self) -> None:
        """Close the client and the engine."""
        self.client.close()
        self.engine.close()


SiteMaker = Callable[..., Site]
