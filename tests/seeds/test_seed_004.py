"""Seed 004: resources on the agent's side. Its messages are sent as they stand there."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

# The seed's addresses are absolute: a root is given the public prefix under which they lie.
DATA = """
sources:
  files:
    kind: file
    roots: [{path: ./data, as: /data}]
resources:
  - {uri: "file:///data/users.csv", name: User Data}
"""
PROJECT = """
sources:
  files: {kind: file, roots: [{path: ./project, as: /project}]}
resources:
  - uri: file:///project/config.json
    name: Application Configuration
    description: Main configuration file for the application
    mimeType: application/json
    annotations: {priority: 0.8, team: platform}
"""
LOGS = """
sources:
  files:
    kind: file
    roots: [{path: ./logs, as: /logs}]
    templates:
      - uri: "file:///logs/{date}.log"
        name: Daily Logs
        description: Server logs for a specific date
        parameters: {date: {type: string, description: Date in YYYY-MM-DD format}}
"""
GUARDED = """
sources:
  files: {kind: file, roots: [{path: ./data, as: /data}]}
agents:
  agent-brand: {roles: [marketing]}
policy:
  - {who: agent-brand, may: [list, read, watch], what: "file:///data/*"}
  - {who: agent-brand, may: "*", what: "file:///data/hr/*", effect: deny, why: HR records are not for agents}
"""
UPDATED = "notifications/resources/updated"


@pytest.mark.seed("A13")
async def test_a_resource_has_uri_name_description_type_and_annotations(serve: Any, put: Any) -> None:
    put("project/config.json", "{}")
    async with serve(PROJECT) as wire:
        (resource,) = await wire.listed()
    about = {key: resource[key] for key in ("uri", "name", "description", "mimeType")}
    assert about == {
        "uri": "file:///project/config.json",
        "name": "Application Configuration",
        "description": "Main configuration file for the application",
        "mimeType": "application/json",
    }
    assert resource["annotations"]["priority"] == 0.8
    assert resource["_meta"]["dev.octavo/annotations"] == {"team": "platform"}


@pytest.mark.seed("A2")
async def test_the_list_message_gives_pages_that_cursors_connect(serve: Any, put: Any) -> None:
    for number in range(150):
        put(f"data/{number:03}.csv", "a,b\n")
    put("data/users.csv", "id,name\n")
    async with serve(DATA) as wire:
        first = (await wire.send({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {}}))["result"]
        message = {"jsonrpc": "2.0", "id": 2, "method": "resources/list", "params": {"cursor": first["nextCursor"]}}
        second = (await wire.send(message))["result"]
    assert len(first["resources"]) == 100 and "nextCursor" not in second
    assert len({entry["uri"] for entry in first["resources"] + second["resources"]}) == 151
    users = second["resources"][-1]
    assert (users["uri"], users["name"], users["mimeType"]) == ("file:///data/users.csv", "User Data", "text/csv")


@pytest.mark.seed("A2", "A12")
async def test_the_cursor_of_the_example_is_refused_because_nobody_was_given_it(serve: Any, put: Any) -> None:
    put("data/users.csv", "id,name\n")
    async with serve(DATA) as wire:
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"cursor": "optional-cursor"}}
        error = (await wire.send(message))["error"]
    assert (error["code"], error["data"]["reason"]) == (-32602, "invalid_cursor")


@pytest.mark.seed("A2", "F1")
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
async def test_the_read_message_is_answered_in_the_spelling_that_was_asked(serve: Any, put: Any, modern: bool) -> None:
    text = '{\n  "database": "postgres://localhost/myapp",\n  "port": 3000\n}'
    put("data/config.json", text)
    async with serve(DATA, modern=modern) as wire:
        message = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "resources/read",
            "params": {"uri": "file:///data/config.json"},
        }
        answer = await wire.send(message)
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 2)
    (content,) = answer["result"]["contents"]
    content.pop("_meta")
    assert content == {"uri": "file:///data/config.json", "mimeType": "application/json", "text": text}


@pytest.mark.seed("A3")
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
async def test_a_template_is_listed_with_its_described_parameters(serve: Any, put: Any, modern: bool) -> None:
    put("logs/2024-03-15.log", "started\n")
    async with serve(LOGS, modern=modern) as wire:
        offered = (await wire.ask("resources/templates/list"))["resourceTemplates"]
    daily = next(one for one in offered if one["name"] == "Daily Logs")
    assert daily["uriTemplate"] == "file:///logs/{date}.log"
    assert daily["description"] == "Server logs for a specific date"
    parameters = daily["_meta"]["dev.octavo/parameters"]
    assert parameters["properties"] == {"date": {"type": "string", "description": "Date in YYYY-MM-DD format"}}


@pytest.mark.seed("A3")
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
async def test_an_address_of_the_template_is_read_and_its_variable_completed(
    serve: Any, put: Any, modern: bool
) -> None:
    put("logs/2024-03-15.log", "started\n")
    put("logs/2024-03-16.log", "stopped\n")
    async with serve(LOGS, modern=modern) as wire:
        content = await wire.read("file:///logs/2024-03-15.log")
        ref = {"type": "ref/resource", "uri": "file:///logs/{date}.log"}
        found = await wire.ask("completion/complete", ref=ref, argument={"name": "date", "value": "2024-03-1"})
    assert (content["uri"], content["text"]) == ("file:///logs/2024-03-15.log", "started\n")
    assert found["completion"]["values"] == ["2024-03-15", "2024-03-16"]


@pytest.mark.seed("A3")
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
async def test_words_of_the_operator_describe_the_parameters_of_any_template(serve: Any, modern: bool) -> None:
    configuration = """
sources:
  items: {kind: memory, scheme: item, templates: {"part/{id}": {text: "part {id}", name: Part, values: {id: [a1, b2]}}}}
resources:
  - {uri: "item://part/{id}", description: One part, parameters: {id: {type: string, description: Its number}}}
"""
    async with serve(configuration, modern=modern) as wire:
        (part,) = (await wire.ask("resources/templates/list"))["resourceTemplates"]
        ref = {"type": "ref/resource", "uri": "item://part/{id}"}
        found = await wire.ask("completion/complete", ref=ref, argument={"name": "id", "value": "b"})
    assert (part["name"], part["description"]) == ("Part", "One part")
    described = {"type": "object", "properties": {"id": {"type": "string", "description": "Its number"}}}
    assert part["_meta"]["dev.octavo/parameters"] == described
    assert found["completion"]["values"] == ["b2"]


@pytest.mark.seed("A4")
async def test_subscribe_updated_and_unsubscribe_as_in_the_messages(serve: Any, put: Any) -> None:
    put("data/live-metrics.json", '{"cpu": 1}')
    address = "file:///data/live-metrics.json"
    async with serve(DATA) as wire:
        message = {"jsonrpc": "2.0", "id": 3, "method": "resources/subscribe", "params": {"uri": address}}
        assert (await wire.send(message)) == {"jsonrpc": "2.0", "id": 3, "result": {}}  # A4: {} instead of null
        put("data/live-metrics.json", '{"cpu": 22}')
        note = await wire.note(UPDATED)
        assert (note["jsonrpc"], note["method"], note["params"]["uri"]) == ("2.0", UPDATED, address)
        message = {"jsonrpc": "2.0", "id": 4, "method": "resources/unsubscribe", "params": {"uri": address}}
        assert (await wire.send(message)) == {"jsonrpc": "2.0", "id": 4, "result": {}}
        await wire.ask("resources/subscribe", uri="file:///data/other.json")
        put("data/live-metrics.json", '{"cpu": 333}')
        put("data/other.json", "{}")
        note = await wire.note(UPDATED)
        assert note["params"]["uri"] == "file:///data/other.json", "nothing came of what is no longer subscribed"


@pytest.mark.seed("A4")
async def test_the_list_changes_when_resources_are_added_or_removed(serve: Any, put: Any) -> None:
    put("data/users.csv", "id,name\n")
    async with serve(DATA) as wire:
        await wire.ask("resources/list")
        file = put("data/more.csv", "id\n")
        assert (await wire.note("notifications/resources/list_changed"))["jsonrpc"] == "2.0"
        file.unlink()
        await wire.note("notifications/resources/list_changed")


@pytest.mark.seed("A4")
async def test_a_listen_stream_of_the_modern_era_hears_the_same_change(serve: Any, put: Any) -> None:
    put("data/live-metrics.json", '{"cpu": 1}')
    async with serve(DATA, modern=True) as wire:
        wanted = {"resourceSubscriptions": ["file:///data/live-metrics.json", "file:///data/*"]}
        await wire.begin("subscriptions/listen", notifications=wanted)
        accepted = await wire.note("notifications/subscriptions/acknowledged")
        assert accepted["params"]["notifications"]["resourceSubscriptions"] == wanted["resourceSubscriptions"]
        put("data/live-metrics.json", '{"cpu": 22}')
        note = await wire.note(UPDATED)
    assert note["params"]["uri"] == "file:///data/live-metrics.json"
    event = note["params"]["_meta"]["dev.octavo/event"]
    assert event["type"] == "resource/updated" and event["changes"]["size"] == [10, 11]


@pytest.mark.seed("A4")
async def test_capabilities_say_subscribe_and_list_changed(serve: Any, put: Any) -> None:
    put("data/users.csv", "id,name\n")
    async with serve(DATA) as wire:
        assert wire.welcome["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}


@pytest.mark.seed("A2", "F7")
async def test_text_and_binary_content_have_the_shapes_of_the_seed(serve: Any, put: Any) -> None:
    put("data/doc.txt", "Document content here")
    put("data/image.png", b"\x89PNG\r\n\x1a\n\x00")
    async with serve(DATA) as wire:
        text, image = await wire.read("file:///data/doc.txt"), await wire.read("file:///data/image.png")
    text.pop("_meta"), image.pop("_meta")
    assert text == {"uri": "file:///data/doc.txt", "mimeType": "text/plain", "text": "Document content here"}
    assert (image["uri"], image["mimeType"]) == ("file:///data/image.png", "image/png")
    assert base64.b64decode(image["blob"]) == b"\x89PNG\r\n\x1a\n\x00" and "text" not in image


@pytest.mark.seed("A2")
async def test_structured_data_is_json_text_whatever_the_scheme(serve: Any) -> None:
    """The seed's `db://users/active`, from memory until there are databases."""
    rows = '[{"id": 1, "name": "Alice"}, {"id": 2, "name": "Bob"}]'
    view = {"text": rows, "mimeType": "application/json"}
    source = {"kind": "memory", "scheme": "db", "resources": {"users/active": view}}
    async with serve(json.dumps({"sources": {"db": source}})) as wire:
        content = await wire.read("db://users/active")
    assert (content["mimeType"], content["text"]) == ("application/json", rows)


@pytest.mark.seed("F7", "A13")
async def test_a_yaml_configuration_file_has_its_type(serve: Any, put: Any) -> None:
    put("config/app.yaml", "name: app\n")
    configuration = """
sources:
  files: {kind: file, roots: [{path: ./config, as: /config}]}
resources:
  - {uri: "file:///config/app.yaml", name: Application Config}
"""
    async with serve(configuration) as wire:
        (resource,) = await wire.listed()
    assert (resource["uri"], resource["name"]) == ("file:///config/app.yaml", "Application Config")
    assert resource["mimeType"] == "application/yaml"


@pytest.mark.seed("A8", "B2", "O14")
async def test_only_what_a_rule_names_is_seen_read_and_watched(serve: Any, put: Any) -> None:
    put("data/users.csv", "id\n")
    put("data/hr/salaries.csv", "id\n")
    async with serve(GUARDED, who="agent-brand") as wire:
        assert [entry["uri"] for entry in await wire.listed()] == ["file:///data/users.csv"]
        ref = {"type": "ref/resource", "uri": "file://{+path}"}
        found = await wire.ask("completion/complete", ref=ref, argument={"name": "path", "value": ""})
        assert found["completion"]["values"] == ["users.csv"]
        refusals = [
            await wire.refused("resources/read", uri="file:///data/hr/salaries.csv"),
            await wire.refused("resources/read", uri="file://hr/salaries.csv"),
            await wire.refused("resources/subscribe", uri="file:///data/hr/salaries.csv"),
        ]
    assert [error["code"] for error in refusals] == [-32003] * 3
    async with serve(GUARDED) as wire:
        assert await wire.listed() == [], "no rule speaks of the local user, so nothing is there for it"
        assert (await wire.refused("resources/read", uri="file://users.csv"))["data"]["agent"] == "local"


@pytest.mark.seed("A12", "O13", "F8")
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
async def test_the_five_errors(serve: Any, put: Any, modern: bool) -> None:
    put("data/users.csv", "id\n")
    put("data/hr/salaries.csv", "id\n")
    put("data/large.csv", "x" * ((1 << 20) + 1))
    missing = "file:///data/none.csv"
    async with serve(GUARDED, who="agent-brand", modern=modern) as wire:
        not_found = await wire.refused("resources/read", uri=missing)
        denied = await wire.refused("resources/read", uri="file:///data/hr/salaries.csv")
        no_address = await wire.refused("resources/read", uri="users.csv")
        no_scheme = await wire.refused("resources/read", uri="ftp://data/users.csv")
        too_large = await wire.refused("resources/read", uri="file:///data/large.csv")
    assert (not_found["code"], not_found["data"]) == (-32602 if modern else -32002, {"uri": missing})
    assert (denied["code"], denied["message"]) == (
        -32003,
        "Access denied to resource: file:///data/hr/salaries.csv",
    )
    assert denied["data"] == {
        "reason": "forbidden",
        "agent": "agent-brand",
        "required_permission": "read",
        "resource": "file:///data/hr/*",
        "why": "HR records are not for agents",
    }
    assert (no_address["code"], no_address["data"]["reason"]) == (-32602, "invalid_params")
    assert (no_scheme["code"], no_scheme["data"]["reason"]) == (-32602, "unknown_scheme")
    assert (too_large["code"], too_large["data"]["reason"]) == (-31006, "too_large")
    assert (too_large["data"]["size"], too_large["data"]["limit"]) == ((1 << 20) + 1, 1 << 20)


@pytest.mark.seed("A5")
async def test_a_read_has_a_largest_size_and_says_it(serve: Any, put: Any) -> None:
    put("data/users.csv", "0123456789")
    async with serve(DATA + "limits: {read: 9}\n") as wire:
        error = await wire.refused("resources/read", uri="file:///data/users.csv")
    assert (error["data"]["size"], error["data"]["limit"]) == (10, 9)


@pytest.mark.seed("A7", "F9")
async def test_every_access_is_on_record_with_its_outcome(serve: Any, put: Any) -> None:
    put("data/users.csv", "id\n")
    put("data/hr/salaries.csv", "id\n")
    async with serve(GUARDED, who="agent-brand") as wire:
        await wire.read("file:///data/users.csv")
        await wire.refused("resources/read", uri="file:///data/hr/salaries.csv")
        await wire.refused("resources/read", uri="file:///data/../etc/passwd")
        records = [record for record in wire.records() if record["op"] == "read"]
    assert [record["outcome"] for record in records] == ["ok", "forbidden", "forbidden"]
    assert {record["who"] for record in records} == {"agent-brand"}
    assert records[1]["rule"] == "policy[1]"


@pytest.mark.seed("O9")
async def test_metadata_of_a_resource_reaches_the_client(serve: Any) -> None:
    about = {"id": "sop-brand-campaign-brief", "version": "1.2.0", "tags": ["brand", "campaign", "creative"]}
    brief = {"text": "---\n...", "mimeType": "text/markdown", "name": "캠페인 브리프 작성", "metadata": about}
    source = {"kind": "memory", "scheme": "sop", "resources": {"brand/campaign-brief": brief}}
    async with serve(json.dumps({"sources": {"sop": source}})) as wire:
        (listed,) = await wire.listed()
        content = await wire.read("sop://brand/campaign-brief")
    assert (listed["name"], listed["_meta"]["dev.octavo/metadata"]) == ("캠페인 브리프 작성", about)
    assert content["_meta"]["dev.octavo/metadata"] == about
    assert (content["uri"], content["mimeType"]) == ("sop://brand/campaign-brief", "text/markdown")


@pytest.mark.seed("F3")
@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
async def test_a_link_out_of_the_root_is_not_there(serve: Any, put: Any, tmp_path: Any) -> None:
    put("data/users.csv", "id\n")
    put("secret.csv", "secret\n")
    (tmp_path / "data" / "out.csv").symlink_to(tmp_path / "secret.csv")
    async with serve(DATA) as wire:
        assert [entry["uri"] for entry in await wire.listed()] == ["file:///data/users.csv"]
        assert (await wire.refused("resources/read", uri="file:///data/out.csv"))["code"] == -32002
