"""Secrets: named in the document, never in it."""

import pytest
from deployment_texts import changed, check, told

from comesh.core.ids import DeviceId
from comesh.deployment.tree import SecretName

WITH_SECRET = changed(
    "place: [1m, 1m]", "place: [1m, 1m]\n    driver: {type: mqtt, topic: a, login: [{password: !secret PW}]}"
)
OPTIONS = {"topic": "a", "login": [{"password": SecretName("PW")}]}


def test_the_document_holds_the_name_only() -> None:
    deployment = check(WITH_SECRET).deployment
    assert deployment is not None
    options = deployment.devices[DeviceId("lamp")].driver.options
    assert options == OPTIONS


@pytest.mark.parametrize("option", ["password: x", "api_key: x", "token: 5", "auth: {pass-key: x}", "PSK: x"])
def test_a_secret_in_the_open_is_refused_and_not_repeated(option: str) -> None:
    text = changed("place: [1m, 1m]", f"place: [1m, 1m]\n    driver: {{type: mqtt, {option}}}")
    [line] = told(text)
    assert "looks like a secret in the open; write" in line


def test_harmless_options_are_not_refused() -> None:
    text = changed(
        "place: [1m, 1m]",
        "place: [1m, 1m]\n    driver: {type: mqtt, keyboard: x, tokens_per_s: 3, secret: true}",
    )
    assert told(text) == []


@pytest.mark.parametrize("place", ["name: !secret X", "on: !secret X"])
def test_secrets_are_for_drivers_only(place: str) -> None:
    assert (
        "a secret can only be used in the options of a driver"
        in told(changed("on: a\n", f"on: a\n    {place}\n" if "name" in place else f"{place}\n"))[0]
    )


def test_a_secret_needs_a_name() -> None:
    assert "is not the name of a secret" in told(WITH_SECRET.replace("!secret PW", "!secret two words"))[0]
