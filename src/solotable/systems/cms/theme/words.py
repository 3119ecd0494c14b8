"""The words of the theme in English, German, French and Spanish; settings can replace each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from string import Formatter
from typing import Any

from solotable.systems.browser.dates import Moment, full_time

_LANGUAGES = ("en", "de", "fr", "es")
#: By name, in the order of the languages.
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "skip": ("Skip to content", "Zum Inhalt", "Aller au contenu", "Ir al contenido"),
    "main_menu": ("Main", "Hauptmenü", "Menu principal", "Menú principal"),
    "footer_menu": ("Footer", "Fußzeile", "Pied de page", "Pie de página"),
    "more": ("More", "Mehr", "Plus", "Más"),
    "hours": ("Opening hours", "Öffnungszeiten", "Horaires", "Horario"),
    "comments": ("Comments", "Kommentare", "Commentaires", "Comentarios"),
    "error": ("Error", "Fehler", "Erreur", "Error"),
    "not_found": (
        "This page does not exist",
        "Hier ist keine Seite",
        "Il n’y a pas de page ici",
        "Aquí no hay ninguna página",
    ),
    "not_found_text": (
        "Perhaps the address has a typing error, or the page was removed. Nothing is wrong with your device.",
        "Vielleicht ist die Adresse falsch geschrieben, oder die Seite ist weg. Ihr Gerät ist in Ordnung.",
        "L’adresse contient peut-être une faute, ou la page a été retirée. Votre appareil fonctionne bien.",
        "Quizá la dirección tiene un error, o la página se eliminó. Su dispositivo funciona bien.",
    ),
    "home": ("Go to the start", "Zur Startseite", "Aller à l’accueil", "Ir al inicio"),
    "contact": ("Contact", "Kontakt", "Contact", "Contacto"),
    "telephone": ("Telephone", "Telefon", "Téléphone", "Teléfono"),
    "your_name": ("Your name", "Ihr Name", "Votre nom", "Su nombre"),
    "optional": ("may stay empty", "kann leer bleiben", "facultatif", "puede quedar vacío"),
    "email": ("E-mail", "E-Mail", "E-mail", "Correo"),
    "message": ("Message", "Nachricht", "Message", "Mensaje"),
    "message_hint": (
        "up to 4,000 characters",
        "bis zu 4.000 Zeichen",
        "4 000 caractères au plus",
        "hasta 4.000 caracteres",
    ),
    "send": ("Send message", "Nachricht senden", "Envoyer le message", "Enviar mensaje"),
    "not_sent": (
        "Your message is not sent yet",
        "Ihre Nachricht ist noch nicht gesendet",
        "Votre message n’est pas encore envoyé",
        "Su mensaje aún no se ha enviado",
    ),
    "email_wrong": (
        "This is not an e-mail address. Write it like name@example.org.",
        "Das ist keine E-Mail-Adresse. Schreiben Sie sie wie name@example.org.",
        "Ce n’est pas une adresse e-mail. Écrivez-la comme nom@example.org.",
        "Esto no es una dirección de correo. Escríbala como nombre@example.org.",
    ),
    "message_missing": (
        "Write a few words, so that we know how to help.",
        "Schreiben Sie ein paar Worte, damit wir helfen können.",
        "Écrivez quelques mots pour que nous puissions aider.",
        "Escriba unas palabras para que podamos ayudar.",
    ),
    "name_long": (
        "Use at most 200 characters.",
        "Höchstens 200 Zeichen.",
        "200 caractères au plus.",
        "Como máximo 200 caracteres.",
    ),
    "message_long": (
        "Use at most 4,000 characters.",
        "Höchstens 4.000 Zeichen.",
        "4 000 caractères au plus.",
        "Como máximo 4.000 caracteres.",
    ),
    "sent": (
        "Thank you. Your message is with us.",
        "Danke. Ihre Nachricht ist bei uns.",
        "Merci. Votre message est bien arrivé.",
        "Gracias. Hemos recibido su mensaje.",
    ),
    "sent_text": (
        "We will answer by e-mail.",
        "Wir antworten per E-Mail.",
        "Nous répondrons par e-mail.",
        "Responderemos por correo.",
    ),
    "sent_to": (
        "We will answer to {email}.",
        "Wir antworten an {email}.",
        "Nous répondrons à {email}.",
        "Responderemos a {email}.",
    ),
    "failed": ("Something went wrong", "Etwas ging schief", "Quelque chose a échoué", "Algo ha fallado"),
    "failed_text": (
        "Nothing is wrong with your device. Try again in a moment.",
        "Ihr Gerät ist in Ordnung. Versuchen Sie es gleich noch einmal.",
        "Votre appareil fonctionne bien. Réessayez dans un instant.",
        "Su dispositivo funciona bien. Inténtelo de nuevo en un momento.",
    ),
    "too_many": (
        "These were many messages at once. Your text is still here; send it again in {minutes} minutes.",
        "Das waren viele Nachrichten auf einmal. Ihr Text ist noch da; senden Sie ihn in {minutes} Minuten.",
        "Beaucoup de messages à la fois. Votre texte est toujours là ; renvoyez-le dans {minutes} minutes.",
        "Son muchos mensajes a la vez. Su texto sigue aquí; envíelo de nuevo en {minutes} minutos.",
    ),
    "closed": (
        "This site is closed",
        "Diese Website ist geschlossen",
        "Ce site est fermé",
        "Este sitio está cerrado",
    ),
    "closed_text": (
        "It is not available at this address.",
        "Unter dieser Adresse gibt es nichts.",
        "Il n’est pas disponible à cette adresse.",
        "No está disponible en esta dirección.",
    ),
}
_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
_DAYS = {"en": "{} {} {}", "de": "{}. {} {}", "fr": "{} {} {}", "es": "{} de {} de {}"}
_MAX_WORD = 500
#: The parts of texts that a page fills in; a text of the settings may have these only.
_PARTS = {"sent_to": "email", "too_many": "minutes"}


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one site: `words["send"]`."""

    language: str = "en"
    replaced: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        """Return a text in the site's language, in English for another language."""
        known = self._base if self._base in _LANGUAGES else "en"
        return self.replaced.get(name) or _TEXTS[name][_LANGUAGES.index(known)]

    def fill(self, name: str, **parts: object) -> str:
        """Return a text with its parts."""
        return self[name].format(**parts)

    def day(self, when: datetime) -> Moment:
        """Return a day in the site's language; as ISO 8601 for languages without names of months."""
        at = when.astimezone(UTC)
        return Moment(at.date().isoformat(), self._day(at.date()), full_time(at))

    @property
    def _base(self) -> str:
        return self.language.partition("-")[0].lower()

    def _day(self, day: date) -> str:
        if self._base not in _MONTHS:
            return day.isoformat()
        return _DAYS[self._base].format(day.day, _MONTHS[self._base].split()[day.month - 1], day.year)


def words_of(language: str, given: Any) -> Words:
    """Return the words of a site; `given` replaces texts by name, and wrong entries are ignored.

    >>> words_of("de-AT", {"send": "Abschicken", "home": 7})["send"], Words("de")["home"]
    ('Abschicken', 'Zur Startseite')
    """
    entries = given.items() if isinstance(given, dict) else ()
    return Words(language, {name: text for name, text in entries if name in _TEXTS and _fits(name, text)})


def _fits(name: str, text: Any) -> bool:
    if not isinstance(text, str) or not 0 < len(text) <= _MAX_WORD:
        return False
    if name not in _PARTS:
        return True
    try:
        parts = {part: (spec, how) for _, part, spec, how in Formatter().parse(text) if part is not None}
    except ValueError:
        return False
    return all(part == _PARTS[name] and rest == ("", None) for part, rest in parts.items())
