"""Secrets: named in the document, looked up late, never shown."""

from pathlib import Path

import pytest
from deployment_texts import changed, check, told

from comesh.core.ids import DeviceId
from comesh.deployment.secret_names import secret_names
from comesh.deployment.secrets import SecretError, Secrets
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
    assert secret_names(options) == {"PW"}


def test_from_the_environment_first_then_from_the_file(tmp_path: Path) -> None:
    document = tmp_path / "d.yaml"
    (tmp_path / "secrets.yaml").write_text("PW: from file\n")
    assert (
        Secrets(document, {"PW": "from environment"}).resolve(OPTIONS)["login"][0]["password"]
        == "from environment"
    )
    assert Secrets(document, {}).resolve(OPTIONS)["login"][0]["password"] == "from file"
    other = tmp_path / "other.yaml"
    other.write_text("PW: from other file\n")
    secrets = Secrets(document, {"COMESH_SECRETS": str(other)})
    assert secrets.resolve(OPTIONS)["login"][0]["password"] == "from other file"


@pytest.mark.parametrize(
    "content", [None, "", "OTHER: x\n", "PW: 12345\n", "- PW\n", "PW: [\n", "PW: hunter2: x\n"]
)
def test_a_missing_secret_says_where_it_was_looked_for_and_nothing_else(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "secrets.yaml").write_text(content)
    with pytest.raises(SecretError) as wrong:
        Secrets(tmp_path / "d.yaml", {}).resolve(OPTIONS)
    assert "hunter2" not in str(wrong.value) and "12345" not in str(wrong.value)
    assert "secrets.yaml" in str(wrong.value)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="COMESH_SECRETS names"):
        Secrets(tmp_path / "d.yaml", {"COMESH_SECRETS": str(tmp_path / "none")}).resolve(OPTIONS)


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
