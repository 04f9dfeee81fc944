"""The slips that people made when they first wrote a document: each is told with what to write instead."""

import pytest
from deployment_texts import SMALL, changed, check, told

from comesh.core.ids import DeviceId
from comesh.deployment.load import load_bytes
from comesh.deployment.problems import WrongError
from comesh.deployment.schedules import parse_cron, parse_days


def with_routine(line: str) -> str:
    return changed("when: lamp.level > 5", line)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (("mon-fri",), {0, 1, 2, 3, 4}),
        (("sat - mon",), {5, 6, 0}),
        (("mon-tue", "sun"), {0, 1, 6}),
        (("wed-wed",), {2}),
    ],
)
def test_days_may_be_ranges(days: tuple[str, ...], expected: set[int]) -> None:
    assert parse_days(days) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{at: 07:30, days: mon-fir}", "'mon-fir' is not a day; did you mean 'fri'?"),
        ('{at: 07:30, days: "mon, wed"}', "'mon, wed' is not a day; write days: [mon, wed]"),
        ("{at: 07:30, days: Monday-Friday}", "'Monday-Friday' is not a day; write days: mon-fri"),
        ("{at: 07:30, days: Monday}", "'Monday' is not a day; write mon"),
        ("{every: -30s}", "'-30s' is not a duration; it cannot be negative"),
        ("{every: -30}", "-30 is not a duration; it cannot be negative"),
    ],
)
def test_schedules(line: str, expected: str) -> None:
    [problem] = told(with_routine("<<: " + line))
    assert expected in problem


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("on", "'on' is not true or false; write true: on, off, yes and no are words here, as in YAML 1.2"),
        ("No", "'No' is not true or false; write false: on, off, yes and no are words here, as in YAML 1.2"),
        ('"true"', "'true' is not true or false; write true, without quotes and in lower case"),
        ("maybe", "'maybe' is not true or false"),
    ],
)
def test_words_for_true_and_false(word: str, expected: str) -> None:
    [problem] = told(changed("argument: true", f"argument: {word}"))
    assert problem.endswith(expected)


def test_a_cron_line_is_reported_field_by_field() -> None:
    with pytest.raises(WrongError) as told_of:
        parse_cron("61 25 * * *")
    assert "the minute '61' (possible: 0 to 59), and the hour '25' (possible: 0 to 23)" in told_of.value.what
    with pytest.raises(WrongError, match=r"'0 0 30 2 \*' never fires; its day never comes in that month"):
        parse_cron("0 0 30 2 *")
    assert parse_cron("*/5 0-6 L jan sun") == "*/5 0-6 L jan sun"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cron: * 7 * * *", "19: a value that begins with '*' needs quotes; write \"* 7 * * *\""),
        ("cron: */10 7 * * *", "19: a value that begins with '*' needs quotes; write \"*/10 7 * * *\""),
        (
            "when: !lamp.on && lamp.level > 5",
            "19: routines.light.when: a clause that begins with '!' needs quotes; "
            'write when: "!lamp.on && lamp.level > 5"',
        ),
        (
            'when: !lamp.on && now.time > "18:00"  # dark',
            "19: routines.light.when: a clause that begins with '!' needs quotes; "
            "write when: '!lamp.on && now.time > \"18:00\"'",
        ),
        ("when: lamp.on\n    cooldown:30s", "20: a space is missing after the ':'; write cooldown: 30s"),
        ("cooldown:30s\n    when: lamp.on", "19: a space is missing after the ':'; write cooldown: 30s"),
        ("when: 'lamp.on\n    name: 'x'", "19: a quote is opened here and not closed; close it"),
        ('when: lamp.on\n    name: "x\n    for: "5m"', "20: a quote is opened here and not closed; close it"),
    ],
)
def test_signs_of_yaml(line: str, expected: str) -> None:
    assert told(with_routine(line)) == [f"d.yaml:{expected}"]


def test_a_space_that_is_missing_inside_of_braces() -> None:
    assert told(changed("{device: lamp, command: switch, argument: true}", "{device:lamp, command: switch}"))[
        0
    ].endswith("do[0].device:lamp: a space is missing after the ':'; write device: lamp")
    assert "write place: 5" in told(SMALL + "  next:\n    place:5\n")[0]


def test_quotes_over_several_lines_and_in_comments_are_not_suspected() -> None:
    text = "name: 'two\n  lines' # it's\nx-a: don't\nsettings: {f: 1}\nnodes:\n  a: 1\n b: 2\n"
    assert "the indentation does not fit" in told(text)[0]


def test_a_mistake_that_hides_the_rest_is_known_to() -> None:
    assert check(with_routine("cron: * 7 * * *")).stopped_early
    assert not check(with_routine("when: lamp.off")).stopped_early


@pytest.mark.parametrize("end", [" }", "}"])
def test_a_secret_without_a_name(end: str) -> None:
    text = changed(
        "    place: [1m, 1m]", "    place: [1m, 1m]\n    driver: {type: mqtt, password: !secret" + end
    )
    assert "write !secret NAME, such as !secret MQTT_PASSWORD" in told(text)[0]


@pytest.mark.parametrize("data", [b"a: \xff\n", b"\x7fELF\x00", b"\xff\xfea", b"#" * 1_000_001])
def test_bytes_that_are_not_text_cannot_be_read(data: bytes) -> None:
    outcome = load_bytes(data)
    assert outcome.could_not_read and not outcome.stopped_early


@pytest.mark.parametrize("illegal", ["Office_Fan", "office-fan"])
def test_an_illegal_id_is_one_mistake_not_one_per_use(illegal: str) -> None:
    text = SMALL.replace("  lamp:", f"  {illegal}:").replace("lamp.level", "office_fan.level")
    [problem] = told(text.replace("device: lamp", "device: office_fan"))
    assert problem.endswith("cannot be an id; use small letters, digits and _, beginning with a letter, "
                            "such as office_fan")  # fmt: skip
    wrong = text.replace("office_fan.level", "office_fn.level")
    assert "unknown device 'office_fn'; did you mean 'office_fan'?" in "\n".join(told(wrong))
    assert f"did you mean '{illegal}'" not in "\n".join(told(wrong))


def test_illegal_names_of_nodes_readings_and_commands_are_one_mistake() -> None:
    assert len(told(SMALL.replace("  a: {", "  A: {"))) == 1
    assert len(told(SMALL.replace("level: {type", "Level: {type"))) == 1
    assert len(told(SMALL.replace("switch: {", "Switch: {"))) == 1


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("button.press == single", "the text 'single' needs quotes; write \"single\""),
        ("button.press == singel", "the text 'singel' needs quotes; did you mean 'single'?"),
        ("button.press in [single]", "the text 'single' needs quotes; write \"single\""),
        ("single == button.press", "the text 'single' needs quotes; write \"single\""),
        ("button.press == 'single' && zzzzz.up", "unknown device 'zzzzz'; known: button, lamp"),
        ("nov.hour > 5", "unknown device 'nov'; did you mean 'now'?"),
        ("lamp.on == off", "'off' is not true or false; write false"),
        ('lamp.level > "26"', "a number is compared with text; remove the quotes: write 26"),
        ("now.time >= 18", 'text is compared with a number; write "18:00"'),
        ("lamp.on == 0", "compare with false, or write ! before it"),
        ('lamp.on == "yes"', "write true, without quotes"),
    ],
)
def test_clauses(clause: str, expected: str) -> None:
    [problem] = told(with_routine(f"when: >-\n      {clause}"))
    assert expected in problem


def test_a_mistake_in_an_anchor_is_reported_once() -> None:
    lamps = "".join(f"  lamp_{n}: {{<<: *lamp, place: [{n}m, 0m]}}\n" for n in range(4))
    text = "x-lamp: &lamp\n  readings: {on: boool}\n  nmae: x\n" + SMALL.replace(
        "devices:\n", "devices:\n" + lamps
    )
    assert told(text) == [
        "d.yaml:2: devices.lamp_0.readings.on: unknown type 'boool' (and in 3 more places that use it); "
        "did you mean 'bool'?",
        "d.yaml:3: devices.lamp_0.nmae: unknown key 'nmae' (and in 3 more places that use it); "
        "did you mean 'name'?",
    ]


def test_columns_are_those_of_the_values() -> None:
    for old, new, line, column in (
        ("[2m, 0m]", "[2m]", 5, 14),
        ("[2m, 0m]", "nowhere", 5, 14),
        ("{on: bool, level", "{on: boll, level", 9, 20),
        ("on: a\n", "on: d\n", 14, 9),
        ("event: true", "event: maybe", 15, 12),
        ("{argument: bool, sets: on}", "{argument: bool, sets: {no: true}}", 11, 38),
    ):
        [problem] = check(changed(old, new)).problems
        assert (problem.line, problem.column) == (line, column), new


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (
            'now.time >= "18:00" && now.time < "07:00"',
            "this can never be true together with what is before it about now.time; a time over midnight is "
            'written with ||: now.time >= "18:00" || now.time < "07:00"',
        ),
        ("lamp.level > 50 && lamp.on && lamp.level < 20", "this can never be true together with what is"),
        ("lamp.level > 50 && lamp.level < 51", "this can never be true together with what is"),
        ("lamp.level > 260", "this can never be true: lamp.level is a whole number from 0 to 100"),
        ("lamp.level >= 0", "this is always true: lamp.level is a whole number from 0 to 100"),
        ("lamp.level != -5", "this is always true"),
        ("now.hour > 24", "this can never be true: now.hour is a whole number from 0 to 23"),
        ("24 < now.hour", "this can never be true"),
        ("lamp.on && !lamp.on", "this can never be true together"),
        ("lamp.up || now.weekday == 'mon' && now.weekday == 'tue'", "this can never be true together"),
        ("now.hour in [24, 25]", "this can never be true"),
    ],
)
def test_conditions_that_are_never_or_always_true_warn(clause: str, expected: str) -> None:
    outcome = check(with_routine(f"when: >-\n      {clause}"))
    assert outcome.deployment is not None
    [problem] = outcome.warnings
    assert expected in str(problem)


@pytest.mark.parametrize(
    "clause",
    [
        'now.time >= "18:00" || now.time < "07:00"',
        'now.time >= "07:00" && now.time < "18:00"',
        "lamp.level > 50 && lamp.level <= 51",
        "lamp.level in [1, 99] && lamp.level > 50",
        "lamp.level == 100",
        "lamp.level != 0 && lamp.on == false && !(lamp.level > 5)",
        "now.weekday != 'mon' && now.weekday != 'tue'",
        "(lamp.on ? lamp.level : 3) > 260",
        "lamp.level + 1 > 260",
    ],
)
def test_conditions_that_can_be_true_and_false_do_not_warn(clause: str) -> None:
    assert told(with_routine(f"when: >-\n      {clause}")) == []


def test_a_bare_event_is_no_warning() -> None:
    assert told(with_routine("on_event: button.press")) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "[2m, 0m]",
            "[4m, 6m, 1,5m]",
            "a place has two or three lengths, and here are 4; "
            "write a decimal point in place of a comma: 1.5m",
        ),
        ("[2m, 0m]", "[7m]", "a place has two or three lengths, and here is 1; write [x, y, z]"),
        ("[2m, 0m]", "['1,5m', 0m]", "'1,5m' is not a length; write a decimal point: 1.5m"),
        ("{f: 1}", "{epoch: '1,5m'}", "'1,5m' is not a duration; write a decimal point: 1.5m"),
        ("{f: 1}", "{location: [47.4, 8.5]}", "write {latitude: 47.4, longitude: 8.5}"),
        ("{f: 1}", "{lease: 2m}", "lease: 10 leases of 2m are longer than an epoch of 1m; at most 6s"),
        ("range: [0, 100]}}\n    c", "range: [0.2, 0.8]}}\n    c", "no whole number is in the range"),
        (
            "      - {device: lamp, command: switch, argument: true}",
            "      {device: lamp, command: switch, argument: true}",
            "expected a list, got a mapping; write '- ' before each entry, or [ and ] around it",
        ),
    ],
)  # fmt: skip
def test_values(old: str, new: str, expected: str) -> None:
    [problem] = told(changed(old, new))
    assert expected in problem


def test_a_place_far_from_the_rest_is_a_warning() -> None:
    [problem] = check(changed("[2m, 0m]", "[7km, 0m]")).warnings
    assert problem.what == "is 7 km away from the middle of the deployment"
    lines = [f"  n{n}: {{place: [{n % 2 * 5000 + n}m, 0m]}}\n" for n in range(30)]
    assert told("nodes:\n" + "".join(lines)) == []


def test_f_0_is_a_warning_with_any_number_of_nodes_and_advises_f_1() -> None:
    [problem] = told("settings: {f: 0}\nnodes: {a: {place: [0m, 0m]}}\n")
    assert problem.endswith("stands still when its one node fails; have 3 nodes, and set f: 1")
    text = SMALL.replace("{f: 1}", "{f: 0}").replace("[0m, 0m]}", "[0m, 0m], power_domain: x}")
    text = text.replace("[1m, 0m]}", "[1m, 0m], power_domain: x}")
    assert {problem.fix for problem in check(text).problems} == {"set f: 1"}


def toggling(command: str) -> str:
    return changed("      switch:", f"      toggle: {{{command}}}\n      switch:")


def test_a_command_may_toggle() -> None:
    outcome = check(toggling("toggles: on").replace("command: switch, argument: true", "command: toggle"))
    assert outcome.problems == () and outcome.deployment is not None
    assert not outcome.deployment.devices[DeviceId("lamp")].commands["toggle"].idempotent


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("toggles: no", "commands.toggle.toggles: the device has no reading 'no'; known: level, on"),
        ("toggles: level", "only true or false can be toggled, and 'level' is a whole number from 0 to 100"),
        ("toggles: on, sets: {on: true}", "a command either sets or toggles; remove one of them"),
        ("toggles: on, argument: int", "a command that toggles takes no argument"),
        ("toggles: on, idempotent: true", "toggling twice is not toggling once; remove idempotent"),
    ],
)
def test_what_cannot_toggle(command: str, expected: str) -> None:
    [problem] = told(toggling(command))
    assert expected in problem


def test_each_reading_is_doubted_for_itself() -> None:
    clause = 'lamp.level > 260 && now.time >= "18:00" && now.time < "07:00"'
    outcome = check(with_routine(f"when: {clause}"))
    assert [(problem.line, problem.column) for problem in outcome.warnings] == [(19, 22), (19, 63)]


@pytest.mark.parametrize("step", ["delay: 40m", "wait: 5s", "scene: evening"])
def test_a_step_of_another_kind_is_one_mistake(step: str) -> None:
    [problem] = told(SMALL + f"      - {step}\n")
    verb = step.partition(":")[0]
    assert f"do[1]: there is no step '{verb}': each step is a command of a device; write " in problem
    misspelled = told(SMALL + "      - {devise: lamp, argument: true}\n")
    assert "did you mean 'device'?" in "\n".join(misspelled)


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("CEST", "write a place, such as Europe/Berlin"),
        ("pst", "write a place, such as America/Los_Angeles"),
        ("XYZT", "abbreviations are not known; write a place, such as Europe/Zurich"),
        ("Zurich", "did you mean 'Europe/Zurich'?"),
        ("Europe/Belin", "did you mean 'Europe/Berlin'?"),
    ],
)
def test_time_zones_are_places(zone: str, expected: str) -> None:
    assert told(changed("{f: 1}", f"{{f: 1, time_zone: {zone}}}"))[0].endswith(expected)


@pytest.mark.parametrize(
    ("days", "expected"), [("mo-fr", "mon-fri"), ("weekdays", "mon-fri"), ("Weekend", "sat-sun")]
)
def test_days_as_people_write_them(days: str, expected: str) -> None:
    [problem] = told(with_routine(f"<<: {{at: 07:30, days: {days}}}"))
    assert problem.endswith(f"write days: {expected}")


def test_a_wrong_location_is_one_mistake_wherever_the_sun_is_used() -> None:
    text = changed("{f: 1}", "{f: 1, location: {latitude: 151, longitude: 8}}")
    [problem] = told(text.replace("lamp.level > 5", "sun.up"))
    assert "latitude: 151 is too large" in problem


@pytest.mark.parametrize("template", ["'{{ lamp.level }} > 5'", "'{% if lamp.on %}'"])
def test_a_template_is_not_a_clause(template: str) -> None:
    [problem] = told(changed("lamp.level > 5", template))
    assert problem.endswith(
        "a clause is not a template; write the condition itself, such as hall_temp.celsius > 26"
    )
