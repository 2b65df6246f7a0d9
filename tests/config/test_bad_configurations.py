"""No bad configuration loads, and each problem names the file, the line and the key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from octavo.app.configuration import load_text
from octavo.config.problems import ConfigError


class Bad(NamedTuple):
    text: str
    line: int
    key: str
    says: str


FILES = "version: 1\nsources:\n  docs: {kind: file, roots: [handbook]%s}\n"
NOTES = "version: 1\nsources:\n  notes:\n    kind: memory\n    scheme: note\n%s"
AGENT = "version: 1\nagents:\n  agent-brand:\n%s"
POLICY = "version: 1\nsources: {docs: {kind: file, roots: [handbook]}}\npolicy:\n%s"


def files(more: str, key: str, says: str) -> Bad:
    return Bad(FILES % f", {more}", 3, f"sources.docs.{key}", says)


def over_store(more: str, key: str, says: str) -> Bad:
    text = f"sources: {{h: {{kind: file, roots: [handbook], expose: false}}, {more}}}"
    return section(text, f"sources.{key}", says)


def rule(text: str, key: str, says: str) -> Bad:
    return Bad(POLICY % f"  - {text}\n", 4, f"policy[0]{key}", says)


def section(text: str, key: str, says: str) -> Bad:
    return Bad(f"version: 1\n{text}\n", 2, key, says)


def http(text: str, key: str, says: str) -> Bad:
    return section(f"serve: {{http: {{{text}}}}}", f"serve.http{key}", says)


def oauth(issuer: str, key: str, says: str, *, more: str = "") -> Bad:
    resource = "" if "resource" in more else "resource: https://o.example/mcp, "
    return http(f"oauth: {{{resource}{more}issuers: {{company: {{{issuer}}}}}}}", f".oauth{key}", says)


YAML: dict[str, Bad] = {
    # who connects
    "a socket without a path": http('bind: "unix:o.sock"', ".bind", "absolute path"),
    "a certificate that is not there": http("tls: {cert: no.pem, key: no.pem}", ".tls.cert", "there is no file"),
    "a certificate without its key": http("tls: {cert: no.pem}", ".tls.key", "is required"),
    "a proxy by name": http(
        "trusted_proxies: [proxy.example]", ".trusted_proxies[0]", "must be an address or a network"
    ),
    "a peer who is no agent": http("peers: [{uid: 1, agent: ghost}]", ".peers[0].agent", "there is no agent ghost"),
    "a peer twice": http("peers: [{uid: 1, agent: local}, {uid: 1, agent: local}]", ".peers[1].uid", "is there twice"),
    "a peer by name": http("peers: [{uid: root, agent: local}]", ".peers[0].uid", "must be"),
    "an issuer in the clear": oauth(
        "issuer: 'http://id.example'", ".issuers.company.issuer", "must be an https address"
    ),
    "an issuer with a password": oauth("issuer: 'https://a:b@id.example'", ".issuers.company.issuer", "an https"),
    "an issuer with a query": oauth("issuer: 'https://id.example?a=b'", ".issuers.company.issuer", "no query"),
    "keys of an issuer in the clear": oauth(
        "issuer: 'https://id.example', jwks: 'http://id.example/k'", ".issuers.company.jwks", "must be an https address"
    ),
    "keys of an issuer in no file": oauth(
        "issuer: 'https://id.example', jwks: 'file:no.json'", ".issuers.company.jwks", "there is no file"
    ),
    "a symmetric algorithm": oauth(
        "issuer: 'https://id.example', algorithms: [HS256]", ".issuers.company.algorithms[0]", "must be"
    ),
    "no algorithm": oauth(
        "issuer: 'https://id.example', algorithms: []", ".issuers.company.algorithms", "not be empty"
    ),
    "an agent of an issuer that is none": oauth(
        "issuer: 'https://id.example', agents: {x: ghost}", ".issuers.company.agents.x", "there is no agent ghost"
    ),
    "no issuer": http("oauth: {resource: 'https://o.example/mcp', issuers: {}}", ".oauth.issuers", "not be empty"),
    "no resource": http(
        "oauth: {issuers: {company: {issuer: 'https://id.example'}}}", ".oauth.resource", "is required"
    ),
    "a resource with a slash": oauth(
        "issuer: 'https://id.example'", ".resource", "no slash", more="resource: https://o.example/, "
    ),
    "a skew of an hour": oauth("issuer: 'https://id.example'", ".skew", "at most 60s", more="skew: 1h, "),
    "a scope with a quote": oauth("issuer: 'https://id.example'", ".scopes[0]", "one scope", more="scopes: ['a\"b'], "),
    "an issuer called role": http(
        "oauth: {resource: 'https://o.example', issuers: {role: {issuer: 'https://id.example'}}}",
        ".oauth.issuers.role",
        "cannot be the name",
    ),
    # the text itself
    "empty file": Bad("", 1, "", "is empty"),
    "only a comment": Bad("# nothing\n", 1, "", "is empty"),
    "a list": Bad("- a\n", 1, "", "must be a mapping"),
    "a word": Bad("octavo\n", 1, "", "must be a mapping"),
    "a tab": Bad("version: 1\nsources:\n\tdocs: x\n", 3, "", "a tab cannot indent"),
    "a duplicate key": Bad("version: 1\nversion: 1\n", 2, "version", "is given twice"),
    "a duplicate source": Bad(
        FILES % "" + "  docs: {kind: file, roots: [other]}\n", 4, "sources.docs", "is given twice"
    ),
    "an anchor": Bad("version: 1\nsources: &all {}\n", 2, "sources", "anchors and aliases"),
    "an alias": Bad("version: &one 1\nstate: {path: *one}\n", 1, "version", "anchors and aliases"),
    "an endless alias": Bad("version: 1\nsources: &x {a: *x}\n", 2, "sources", "anchors and aliases"),
    "an unknown alias": Bad("version: 1\nstate: *nowhere\n", 2, "", "aliases are not used"),
    "a merge key": Bad("version: 1\nsources:\n  <<: {a: 1}\n", 3, "sources", "merge keys"),
    "a tag": Bad("version: 1\nstate: !python/object {}\n", 2, "state", "tags"),
    "a tagged word": Bad("version: 1\nstate: {path: !secret x}\n", 2, "state.path", "tags"),
    "a key that is a list": Bad("version: 1\n? [a, b]\n: 1\n", 2, "", "a key must be plain text"),
    "a key with an anchor": Bad("version: 1\n&x sources: {}\n", 2, "", "a key has no anchor"),
    "two documents": Bad("version: 1\n---\nversion: 1\n", 2, "", "one document"),
    "an open list": Bad("version: 1\npolicy: [\n", 3, "", "is no YAML"),
    "an open quote": Bad('version: 1\nstate: {path: "x\n', 3, "", "is no YAML"),
    "two colons": Bad("version: 1\nstate: path: x\n", 2, "", "is no YAML"),
    "a control character": Bad("version: 1\nstate: {path: a\x01b}\n", 2, "", "control character"),
    "deep nesting": Bad(
        "version: 1\nstate: " + "[" * 60 + "]" * 60 + "\n", 2, "state" + "[0]" * 32, "nested too deeply"
    ),
    "very deep nesting": Bad("version: 1\nstate: " + "[" * 9000, 1, "", "nested too deeply"),
    "not a number": Bad(FILES % ", cache: {ttl: .nan}", 3, "sources.docs.cache.ttl", "number that cannot be used"),
    "a number without end": Bad(
        FILES % (", cache: {ttl: " + "9" * 5000 + "}"), 3, "sources.docs.cache.ttl", "cannot be used"
    ),
    "a key without value": Bad("version: 1\npolicy:\nstate: {path: x}\n", 2, "policy", "has no value"),
    "a list item without value": Bad("version: 1\npolicy:\n  -\n", 3, "policy[0]", "has no value"),
    # the top
    "an unknown section": Bad("version: 1\nsource: {}\n", 2, "source", "did you mean sources?"),
    "an unknown section far off": Bad("version: 1\nzzz: {}\n", 2, "zzz", "known here: version, sources"),
    "version two": Bad("version: 2\n", 1, "version", "must be 1"),
    "version as text": Bad("version: '1'\n", 1, "version", "must be 1"),
    "version true": Bad("version: true\n", 1, "version", "must be 1"),
    "sources as a list": section("sources: []", "sources", "must be a mapping"),
    "policy as a mapping": section("policy: {who: x}", "policy", "must be a list"),
    "limits as text": section("limits: all", "limits", "must be a mapping"),
    # sources
    "a source that is text": section("sources: {docs: handbook}", "sources.docs", "must be a mapping"),
    "no kind": section("sources: {docs: {roots: [handbook]}}", "sources.docs.kind", "is required"),
    "an unknown kind": section("sources: {docs: {kind: flie}}", "sources.docs.kind", "did you mean file?"),
    "a kind of a later release": section(
        "sources: {docs: {kind: notion}}", "sources.docs.kind", "must be one of: file, git, memory, sop"
    ),
    # catalogs
    "a catalog without a store": section("sources: {s: {kind: sop}}", "sources.s.store", "is required"),
    "a store that is not there": section(
        "sources: {s: {kind: sop, store: x}}", "sources.s.store", "there is no source x"
    ),
    "a store that is a catalog": over_store(
        "s: {kind: sop, store: d}, d: {kind: doc, store: h}", "s.store", "is a catalog"
    ),
    "a root in the state folder": section(
        "sources: {d: {kind: file, roots: [.octavo/cache]}}", "sources.d.roots[0]", "never served"
    ),
    "a store that is exposed": section(
        "sources: {h: {kind: file, roots: [handbook]}, s: {kind: sop, store: h}}", "sources.s.store", "two addresses"
    ),
    "two catalogs over one folder": over_store(
        "s: {kind: sop, store: h}, d: {kind: doc, store: h, path: sops}", "d.path", "two addresses"
    ),
    "a catalog inside another": over_store(
        "s: {kind: sop, store: h, path: ./}, d: {kind: doc, store: h}", "d.path", "two addresses"
    ),
    "a catalog inside another that leaves out something else": over_store(
        "s: {kind: sop, store: h, path: ./, without: [inner]}, d: {kind: doc, store: h}", "d.path", "two addresses"
    ),
    "a catalog over a folder that is served": over_store(
        "s: {kind: sop, store: h, path: inner}, f: {kind: file, roots: [handbook/inner]}", "s.path", "two addresses"
    ),
    "two stores over one folder": over_store(
        "s: {kind: sop, store: h, path: inner}, g: {kind: file, roots: [handbook], expose: false}, "
        "d: {kind: doc, store: g, path: inner}",
        "d.path",
        "two addresses",
    ),
    "a path outside the store": over_store("s: {kind: sop, store: h, path: /etc}", "s.path", "relative"),
    "a path that climbs": over_store("s: {kind: sop, store: h, path: ../x}", "s.path", "'..'"),
    "a catalog without files": over_store("c: {kind: catalog, scheme: c, store: h}", "c.files", "is required"),
    "a catalog without a variable": over_store(
        'c: {kind: catalog, scheme: c, store: h, files: "x.md"}', "c", "variables"
    ),
    "a catalog of pictures": over_store(
        'c: {kind: catalog, scheme: c, store: h, files: "{n}.png"}', "c", "must end in"
    ),
    "a schema that is none": over_store(
        'c: {kind: catalog, scheme: c, store: h, files: "{n}.md", schema: {properties: {x: {type: x}}}}',
        "c",
        "JSON Schema",
    ),
    "a kind that is a number": section("sources: {docs: {kind: 3}}", "sources.docs.kind", "must be one of"),
    "a name with a space": section(
        "sources: {my docs: {kind: file, roots: [handbook]}}", "sources.my docs", "without spaces"
    ),
    "no roots": section("sources: {docs: {kind: file}}", "sources.docs.roots", "is required"),
    "empty roots": section("sources: {docs: {kind: file, roots: []}}", "sources.docs.roots", "must not be empty"),
    "roots as text": section("sources: {docs: {kind: file, roots: handbook}}", "sources.docs.roots", "must be a list"),
    "an empty root": section(
        "sources: {docs: {kind: file, roots: ['']}}", "sources.docs.roots[0].path", "must be a path"
    ),
    "a numeric root": section(
        "sources: {docs: {kind: file, roots: [7]}}", "sources.docs.roots[0]", "must be a mapping"
    ),
    "a missing root": section(
        "sources: {docs: {kind: file, roots: [nowhere]}}", "sources.docs.roots[0]", "there is no folder"
    ),
    "a root that is a file": section(
        "sources: {docs: {kind: file, roots: [plugin.py]}}", "sources.docs.roots[0]", "is no folder"
    ),
    "a root below a file": section(
        "sources: {d: {kind: file, roots: [plugin.py/x]}}", "sources.d.roots[0]", "cannot look at"
    ),
    "equal roots": section(
        "sources: {d: {kind: file, roots: [handbook, ./handbook]}}", "sources.d.roots[1]", "same folder"
    ),
    "equal roots by a link": section(
        "sources: {d: {kind: file, roots: [handbook, alias]}}", "sources.d.roots[1]", "same folder"
    ),
    "nested roots": section(
        "sources: {d: {kind: file, roots: [handbook, handbook/inner]}}", "sources.d.roots[1]", "lies inside"
    ),
    "nesting roots": section(
        "sources: {d: {kind: file, roots: [handbook/inner, .]}}", "sources.d.roots[1]", "contains"
    ),
    "one folder in two sources": Bad(
        FILES % "" + "  more: {kind: file, roots: [handbook], scheme: more}\n",
        4,
        "sources.more.roots[0]",
        "two addresses",
    ),
    "a folder of another source": Bad(
        FILES % "" + "  more: {kind: file, roots: [alias/inner], scheme: more}\n",
        4,
        "sources.more.roots[0]",
        "lies inside",
    ),
    "a root with an unknown key": section(
        "sources: {d: {kind: file, roots: [{path: handbook, at: /x}]}}", "sources.d.roots[0].at", "did you mean"
    ),
    "a relative public prefix": section(
        "sources: {d: {kind: file, roots: [{path: handbook, as: project}]}}", "sources.d.roots[0].as", "absolute path"
    ),
    "a climbing public prefix": section(
        "sources: {d: {kind: file, roots: [{path: handbook, as: /a/../b}]}}", "sources.d.roots[0].as", "is no address"
    ),
    "one public prefix twice": section(
        "sources: {d: {kind: file, roots: [{path: handbook, as: /p}, {path: other, as: /p/q}]}}",
        "sources.d.roots[1].as",
        "path of its own",
    ),
    "two roots of one name": section(
        "sources: {d: {kind: file, roots: [handbook, other/handbook]}}", "sources.d.roots[1]", "as: /"
    ),
    "an unknown option": files("extension: [.md]", "extension", "did you mean extensions?"),
    "write as a word": files("write: 'yes'", "write", "must be true or false"),
    "extensions as text": files("extensions: .md", "extensions", "must be a list"),
    "an empty extension": files("extensions: ['.']", "extensions[0]", "must be a suffix"),
    "an extension with a slash": files("extensions: [docs/*.md]", "extensions[0]", "must be a suffix"),
    "expose as a word": files("expose: 'yes'", "expose", "must be true or false"),
    "expose as yes": files("expose: yes", "expose", "must be true or false"),
    "a scheme with capitals": files("scheme: Docs", "scheme", "must be a scheme"),
    "a scheme with an underscore": files("scheme: my_docs", "scheme", "must be a scheme"),
    "a reserved scheme": files("scheme: tool", "scheme", "Octavo's own"),
    "another reserved scheme": files("scheme: changes", "scheme", "Octavo's own"),
    "unknown symlinks": files("symlinks: follow", "symlinks", "must be 'inside' or 'refuse'"),
    "misspelt symlinks": files("symlinks: insde", "symlinks", "did you mean inside?"),
    "unknown hard links": files("hard_links: true", "hard_links", "must be 'auto', 'refuse' or 'allow'"),
    "unknown uris": files("uris: both", "uris", "must be 'absolute' or 'relative'"),
    "an absolute list scope": files("list: {under: /docs}", "list.under", "relative to the roots"),
    "a climbing list scope": files("list: {under: ../docs}", "list.under", "'..'"),
    "list by its field name": files("listing: {under: docs}", "listing", "did you mean list?"),
    "recursive as a number": files("list: {recursive: 1}", "list.recursive", "must be true or false"),
    "a hidden path": files("hide: [a/b]", "hide[0]", "has no slash"),
    "a negative ttl": files("cache: {ttl: -1}", "cache.ttl", "must be a time"),
    "a ttl as a word": files("cache: {ttl: soon}", "cache.ttl", "must be a time"),
    "a template without variables": files(
        "templates: [{uri: 'file://logs/today.log', name: Log}]", "templates[0].uri", "has no variable"
    ),
    "a template without a name": files("templates: [{uri: 'file://{x}.log'}]", "templates[0].name", "is required"),
    "a template of another scheme": files(
        "templates: [{uri: 'log://{x}', name: Log}]", "templates[0].uri", "does not begin with file://"
    ),
    "a variable twice": files("templates: [{uri: 'file://{x}/{x}', name: Log}]", "templates[0].uri", "twice"),
    "an open brace": files("templates: [{uri: 'file://{x}/{y', name: Log}]", "templates[0].uri", "braces"),
    "a template that is no address": files(
        "templates: [{uri: '{x}.log', name: L}]", "templates[0].uri", "is no address"
    ),
    "an unknown parameter": files(
        "templates: [{uri: 'file://{x}', name: L, parameters: {y: {type: string}}}]",
        "templates[0].parameters.y",
        "no variable of the template",
    ),
    "two sources of one scheme": Bad(
        FILES % "" + "  more: {kind: file, roots: [other]}\n", 4, "sources.more", "scheme: of its own"
    ),
    "no memory scheme": section("sources: {n: {kind: memory}}", "sources.n.scheme", "is required"),
    "a resource without content": Bad(
        NOTES % "    resources:\n      a: {name: A}\n", 7, "sources.notes.resources.a", "exactly one"
    ),
    "a resource with two contents": Bad(
        NOTES % "    resources:\n      a: {text: A, base64: QQ==}\n", 7, "sources.notes.resources.a", "exactly one"
    ),
    "bad base64": Bad(
        NOTES % "    resources:\n      a: {base64: '?'}\n", 7, "sources.notes.resources.a.base64", "is no base64"
    ),
    "a climbing resource": Bad(
        NOTES % "    resources:\n      ../a: {text: A}\n", 7, "sources.notes.resources.../a", "'..'"
    ),
    "a resource with a number": Bad(
        NOTES % "    resources:\n      a: {text: 5}\n", 7, "sources.notes.resources.a.text", "quotes"
    ),
    "a bad media type": Bad(
        NOTES % "    resources:\n      a: {text: A, mimeType: markdown}\n",
        7,
        "sources.notes.resources.a.mimeType",
        "media type",
    ),
    "mime_type": Bad(
        NOTES % "    resources:\n      a: {text: A, mime_type: text/plain}\n",
        7,
        "sources.notes.resources.a.mime_type",
        "did you mean mimeType?",
    ),
    "a memory template without variables": Bad(
        NOTES % "    templates:\n      a: {text: A}\n", 7, "sources.notes.templates.a", "has no variable"
    ),
    "values of no variable": Bad(
        NOTES % "    templates:\n      a/{id}: {text: A, values: {it: [x]}}\n",
        7,
        "sources.notes.templates.a/{id}.values.it",
        "no variable of the template",
    ),
    # agents
    "a literal key": Bad(
        AGENT % "    key: correct-horse-battery-staple\n", 4, "agents.agent-brand.key", "write ${NAME}"
    ),
    "a key with a reference inside": Bad(
        AGENT % "    key: x${BRAND_KEY}\n", 4, "agents.agent-brand.key", "write ${NAME}"
    ),
    "a key that is a number": Bad(AGENT % "    key: 12345678\n", 4, "agents.agent-brand.key", "write ${NAME}"),
    "an unset variable": Bad(
        AGENT % '    key: "${NO_SUCH_KEY}"\n', 4, "agents.agent-brand.key", "NO_SUCH_KEY is not set"
    ),
    "an empty variable": Bad(AGENT % '    key: "${EMPTY}"\n', 4, "agents.agent-brand.key", "EMPTY is empty"),
    "a missing key file": Bad(AGENT % "    key: file:nowhere\n", 4, "agents.agent-brand.key", "there is no file"),
    "an empty key file": Bad(AGENT % "    key: file:empty-key\n", 4, "agents.agent-brand.key", "is empty"),
    "a binary key file": Bad(AGENT % "    key: file:binary-key\n", 4, "agents.agent-brand.key", "UTF-8"),
    "a short hash": Bad(AGENT % "    key_sha256: abc\n", 4, "agents.agent-brand.key_sha256", "64 hexadecimal digits"),
    "key and hash": Bad(
        AGENT % ('    key: "${BRAND_KEY}"\n    key_sha256: ' + "a" * 64 + "\n"), 3, "agents.agent-brand", "give one"
    ),
    "a role with a space": Bad(AGENT % "    roles: [the boss]\n", 4, "agents.agent-brand.roles[0]", "without spaces"),
    "roles as text": Bad(AGENT % "    roles: ops\n", 4, "agents.agent-brand.roles", "must be a list"),
    "an agent named local": section("agents: {local: {}}", "agents.local", "meaning of its own"),
    "an agent named like a role": section("agents: {'role:ops': {}}", "agents.role:ops", "meaning of its own"),
    "an agent named star": section("agents: {'*': {}}", "agents.*", "meaning of its own"),
    "an agent without anything": Bad("version: 1\nagents:\n  agent-brand:\n", 3, "agents.agent-brand", "has no value"),
    "one key for two": Bad(
        AGENT % '    key: "${BRAND_KEY}"\n' + '  agent-two:\n    key: "${BRAND_KEY}"\n',
        6,
        "agents.agent-two.key",
        "agent-brand",
    ),
    # policy
    "a condition that asks for nothing": rule(
        '{who: "*", may: read, what: "**", when: {}}', ".when", "asks for nothing"
    ),
    "a condition on a day that is none": rule(
        '{who: "*", may: read, what: "**", when: {time: {days: mon-sunday}}}', ".when.time.days[0]", "must be 'mon'"
    ),
    "hours that are none": rule(
        '{who: "*", may: read, what: "**", when: {time: {hours: "25:00-26:00"}}}',
        ".when.time.hours",
        "two times of a day",
    ),
    "hours that are no text": rule(
        '{who: "*", may: read, what: "**", when: {time: {hours: 9}}}', ".when.time.hours", '"09:00-18:00"'
    ),
    "a date that is none": rule(
        '{who: "*", may: read, what: "**", when: {time: {until: 2026-13-01}}}', ".when.time.until", "must be a date"
    ),
    "a time that never is": rule(
        '{who: "*", may: read, what: "**", when: {time: {from: 2026-12-31, until: 2026-01-01}}}',
        ".when.time",
        "ends before it begins",
    ),
    "a zone that nobody knows": rule(
        '{who: "*", may: read, what: "**", when: {time: {zone: Seoul}}}', ".when.time.zone", "is no time zone"
    ),
    "a condition on arguments of a read": rule(
        '{who: "*", may: [read, invoke], what: "**", unless: {arguments: {a: b}}}', "", "only invoke and render have"
    ),
    "bounds that nothing fits": rule(
        '{who: "*", may: invoke, what: "**", when: {arguments: {a: {min: 3, max: 1}}}}',
        ".when.arguments.a",
        "max below its min",
    ),
    "a label that says nothing": section('labels: [{what: "**"}]', "labels[0]", "needs confidentiality"),
    "a label with a word of its own": section(
        'labels: [{what: "**", confidentiality: top}]', "labels[0].confidentiality", "must be 'public'"
    ),
    "a rule without who": rule("{may: read, what: '**'}", ".who", "is required"),
    "a rule without may": rule("{who: '*', what: '**'}", ".may", "is required"),
    "a rule without what": rule("{who: '*', may: read}", ".what", "is required"),
    "an unknown verb": rule("{who: '*', may: [raed], what: '**'}", ".may[0]", "did you mean read?"),
    "no verbs": rule("{who: '*', may: [], what: '**'}", ".may", "must not be empty"),
    "nobody": rule("{who: [], may: read, what: '**'}", ".who", "must not be empty"),
    "an empty name": rule("{who: '', may: read, what: '**'}", ".who[0]", "must be a name"),
    "a pattern that is none": rule("{who: '*', may: read, what: sops}", ".what[0]", "Not a pattern"),
    "a pattern that climbs": rule("{who: '*', may: read, what: ['file://a/../b']}", ".what[0]", "segment"),
    "an unknown effect": rule("{who: '*', may: read, what: '**', effect: refuse}", ".effect", "'allow' or 'deny'"),
    "effect on": rule("{who: '*', may: read, what: '**', effect: on}", ".effect", "'allow' or 'deny'"),
    "hiding what is allowed": rule("{who: '*', may: read, what: '**', hide: true}", "", "needs effect: deny"),
    "approval of a read": rule("{who: '*', may: read, what: '**', approve: human}", "", "it needs invoke, write"),
    "approval of a refusal": rule(
        "{who: '*', may: invoke, what: '**', effect: deny, approve: human}", "", "a deny is never asked about"
    ),
    "approval by a machine": rule("{who: '*', may: invoke, what: '**', approve: robot}", ".approve", "human, never"),
    "approval by nobody": rule("{who: '*', may: invoke, what: '**', approve: {by: 0}}", ".approve", "1 to 9 people"),
    "approval by a crowd": rule("{who: '*', may: invoke, what: '**', approve: {by: 10}}", ".approve", "1 to 9 people"),
    "approval by an unknown key": rule(
        "{who: '*', may: invoke, what: '**', approve: {people: 2}}", ".approve", "{by: NUMBER}"
    ),
    "a question that stands for a day": section("approval: {expires: 24h}", "approval.expires", "between 1s and 60m"),
    "asking nobody": section("approval: {ask: nobody}", "approval.ask", "'client' or 'queue'"),
    "a rule that is text": rule("everybody", "", "must be a mapping"),
    "why as a number": rule("{who: '*', may: read, what: '**', why: 5}", ".why", "must be text"),
    # resources, prompts, plugins
    "words for nothing": section("resources: [{name: A}]", "resources[0].uri", "is required"),
    "words for no address": section("resources: [{uri: handbook}]", "resources[0].uri", "is no address"),
    "words for an unserved scheme": section(
        "resources: [{uri: 'db://x'}]", "resources[0].uri", "no exposed source serves db://"
    ),
    "words for a broken template": section("resources: [{uri: 'db://{x'}]", "resources[0].uri", "has no variable"),
    "a missing prompt folder": section("prompts: {dirs: [nowhere]}", "prompts.dirs[0]", "there is no folder"),
    "prompts as a list": section("prompts: [prompts]", "prompts", "must be a mapping"),
    "a missing plugin": section("plugins: [{path: nowhere.py}]", "plugins[0].path", "there is no"),
    "a plugin that is no Python": section("plugins: [{path: plugin.txt}]", "plugins[0].path", "no Python file"),
    "a folder that is no package": section("plugins: [{path: package}]", "plugins[0].path", "no Python package"),
    "a plugin from nowhere": section("plugins: [{protocol: true}]", "plugins[0]", "exactly one of path, module"),
    "a plugin from two places": section("plugins: [{path: plugin.py, module: x}]", "plugins[0]", "exactly one"),
    "a module that is a path": section("plugins: [{module: a/b}]", "plugins[0].module", "name of a module"),
    # limits and the rest
    "a size as a word": section("limits: {read: big}", "limits.read", "must be a size"),
    "a size of nothing": section("limits: {read: 0}", "limits.read", "must be a size"),
    "a size in terabytes": section("limits: {cache: 1TB}", "limits.cache", "must be a size"),
    "a size that is true": section("limits: {line: true}", "limits.line", "must be a size"),
    "a time in days": section("limits: {time: 1d}", "limits.time", "must be a time"),
    "no time": section("limits: {time: 0}", "limits.time", "above zero"),
    "an empty page": section("limits: {page: 0}", "limits.page", "greater than or equal to 1"),
    "a huge page": section("limits: {page: 100000}", "limits.page", "less than or equal to 1000"),
    "a page as text": section("limits: {page: '100'}", "limits.page", "whole number"),
    "a rate without a time": section("limits: {per_principal: 50}", "limits.per_principal", "must be a rate"),
    "a rate of nothing": section("limits: {per_principal: 0/s}", "limits.per_principal", "must be a rate"),
    "a misspelt limit": section("limits: {subscription: 5}", "limits.subscription", "did you mean subscriptions?"),
    "redaction by a wrong word": section("redact: {rules: none}", "redact.rules", "must be 'default' or 'off'"),
    "redaction off as a boolean": section("redact: {rules: false}", "redact.rules", "must be 'default' or 'off'"),
    "a broken expression": section("redact: {extra: [{name: x, pattern: '('}]}", "redact.extra[0].pattern", "RE2"),
    "an expression that looks around": section(
        "redact: {extra: [{name: x, pattern: '(?=a)b'}]}", "redact.extra[0].pattern", "RE2"
    ),
    "an expression that matches all": section("redact: {allow: ['a*']}", "redact.allow[0]", "empty text"),
    "an audit without sync": section("audit: {sync: never}", "audit.sync", "must be 'batch' or 'always'"),
    "an audit that keeps nothing": section("audit: {keep: 1}", "audit.keep", "greater than or equal to 2"),
    "state in a list": section("state: {path: [x]}", "state.path", "must be a path"),
    "a bind without a port": section("serve: {http: {bind: localhost}}", "serve.http.bind", "host:port"),
    "a bind with a large port": section("serve: {http: {bind: 'localhost:99999'}}", "serve.http.bind", "host:port"),
    "a bind with a bad address": section("serve: {http: {bind: '[::g]:80'}}", "serve.http.bind", "host:port"),
    "a bind with half an address": section("serve: {http: {bind: '[:::]:80'}}", "serve.http.bind", "IPv6"),
    "an open bind without keys": section(
        "serve: {http: {bind: '0.0.0.0:80'}}", "serve.http.bind", "no agent has a key"
    ),
    "a host that is a URL": section(
        "serve: {http: {allowed_hosts: ['http://x']}}", "serve.http.allowed_hosts[0]", "a host"
    ),
    "an origin without scheme": section(
        "serve: {http: {allowed_origins: [x]}}", "serve.http.allowed_origins[0]", "an origin"
    ),
    "any origin": section("serve: {http: {allowed_origins: ['*']}}", "serve.http.allowed_origins[0]", "an origin"),
    "unknown error codes": section("serve: {error_codes: mine}", "serve.error_codes", "must be 'seed' or 'strict'"),
    "a misspelt transport": section("serve: {htpp: {}}", "serve.htpp", "did you mean http?"),
}

TOML: dict[str, Bad] = {
    "no TOML": Bad("version = 1\nsources = \n", 2, "", "is no TOML"),
    "an empty TOML": Bad("\n", 1, "", "is empty"),
    "a key twice": Bad("version = 1\nversion = 1\n", 2, "", "is no TOML"),
    "a table twice": Bad("version = 1\n[state]\n[state]\n", 3, "", "is no TOML"),
    "an unknown table": Bad('version = 1\n\n[source.docs]\nkind = "file"\n', 3, "source", "did you mean sources?"),
    "an unknown TOML option": Bad(
        'version = 1\n[sources.docs]\nkind = "file"\nroots = ["handbook"]\nextension = []\n',
        5,
        "sources.docs.extension",
        "did you mean extensions?",
    ),
    "a missing TOML root": Bad(
        'version = 1\n[sources.docs]\nkind = "file"\nroots = ["nowhere"]\n',
        4,
        "sources.docs.roots[0]",
        "there is no folder",
    ),
    "a bad verb in the second rule": Bad(
        '[[policy]]\nwho = "*"\nmay = "read"\nwhat = "**"\n\n[[policy]]\nwho = "*"\nmay = "raed"\nwhat = "**"\n',
        8,
        "policy[1].may[0]",
        "did you mean read?",
    ),
    "a dotted key": Bad("version = 1\nlimits.page = 0\n", 2, "limits.page", "greater than or equal to 1"),
    "a date": Bad("version = 1\n[state]\npath = 2025-01-01\n", 3, "state.path", "must be a path"),
    "a literal TOML key": Bad(
        '[agents.agent-brand]\nkey = "correct-horse-battery-staple"\n', 2, "agents.agent-brand.key", "write ${NAME}"
    ),
}


def refusal(text: str, file: Path, environ: Mapping[str, str]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_text(text, file=file, environ=environ)
    return caught.value


def test_there_are_more_than_a_hundred() -> None:
    assert len(YAML) + len(TOML) > 150


@pytest.mark.parametrize("bad", YAML.values(), ids=YAML.keys())
def test_a_bad_yaml_is_refused_with_file_line_and_key(bad: Bad, site: Path, environ: dict[str, str]) -> None:
    file = site / "octavo.yaml"
    problems = refusal(bad.text, file, environ).problems
    told = [(p.file, p.line, p.key) for p in problems if bad.says in f"{p.message} {p.hint}"]
    assert (str(file), bad.line, bad.key) in told, [str(p) for p in problems]


@pytest.mark.parametrize("bad", TOML.values(), ids=TOML.keys())
def test_a_bad_toml_is_refused_with_file_line_and_key(bad: Bad, site: Path, environ: dict[str, str]) -> None:
    file = site / "octavo.toml"
    problems = refusal(bad.text, file, environ).problems
    told = [(p.file, p.line, p.key) for p in problems if bad.says in f"{p.message} {p.hint}"]
    assert (str(file), bad.line, bad.key) in told, [str(p) for p in problems]


def test_all_problems_are_told_at_once_in_the_order_of_the_file(site: Path, environ: dict[str, str]) -> None:
    text = """\
version: 2
sources:
  docs: {kind: file, roots: [handbook]}
  more: {kind: file, roots: [alias], scheme: more}
  lost: {kind: file, roots: [nowhere], expse: true}
agents:
  a: {key: "${BRAND_KEY}"}
  b: {key: "${BRAND_KEY}"}
  c: {key: "${UNSET}"}
policy:
  - {who: a, may: raed, what: "**"}
  - {who: a, may: read, what: "docs"}
plugins:
  - {path: 5}
  - {path: nowhere.py}
"""
    problems = refusal(text, site / "octavo.yaml", environ).problems
    assert [(p.line, p.key) for p in problems] == [
        (1, "version"),
        (4, "sources.more.roots[0]"),
        (5, "sources.lost.expse"),
        (8, "agents.b.key"),
        (9, "agents.c.key"),
        (11, "policy[0].may[0]"),
        (12, "policy[1].what[0]"),
        (14, "plugins[0].path"),
        (15, "plugins[1].path"),
    ]
    assert str(problems[2]) == f"{site}/octavo.yaml:5:40: sources.lost.expse: unknown key (did you mean expose?)"


def test_what_was_broken_elsewhere_is_not_told_as_missing(site: Path) -> None:
    """A source or an agent with a problem of its own is there: nobody should look for it twice."""
    text = """\
sources: {docs: {kind: file, roots: [handbook], expse: true}}
agents: {a: {key: "${UNSET}"}}
resources: [{uri: "file://a.md"}]
serve: {http: {bind: "0.0.0.0:80"}}
"""
    problems = refusal(text, site / "octavo.yaml", {}).problems
    assert [p.key for p in problems] == ["sources.docs.expse", "agents.a.key"]
