"""The shape of octavo.yaml. The JSON Schema that editors use is made from these classes, never by hand.

Values are final here: sizes are bytes, times are seconds, paths are absolute, secrets are resolved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from octavo.config.reference import FilePath, Secret
from octavo.config.sections.commands import Commands
from octavo.config.sections.conditions import Demands
from octavo.config.sections.http import Http
from octavo.config.sections.limits import Allowance, SourceLimit, ToolLimit
from octavo.config.sections.search import Search
from octavo.config.sections.source import AnyOptions
from octavo.config.sections.stores import Shared, SQLite, Store
from octavo.config.sections.web import Web
from octavo.config.strict import Strict, written
from octavo.config.units import (
    Age,
    ByteLimit,
    Limit,
    People,
    Size,
    Timeout,
    parse_byte_rate,
    parse_rate,
    parse_size,
    parse_timeout,
)
from octavo.config.words import (
    AgentId,
    Count,
    Expression,
    Flag,
    MimeType,
    Name,
    Patterns,
    UriOrTemplate,
    Who,
    Whos,
    check_url,
    verbs,
)
from octavo.core.values import LONGEST_QUESTION, Verb


def _check_digest(digest: str) -> str:
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise ValueError("must be 64 hexadecimal digits in small letters, as sha256sum prints them")
    return digest


class Agent(Strict):
    key: Secret | None = Field(
        default=None,
        description="The key that the agent sends over HTTP, as ${NAME} (an environment variable) or file:PATH. "
        "Never the key itself.",
    )
    key_sha256: Annotated[str, AfterValidator(_check_digest)] | None = Field(
        default=None,
        repr=False,
        description="Instead of key: its SHA-256 in hexadecimal, so that the server need not know the key.",
    )
    roles: tuple[Name, ...] = Field(default=(), description='Roles, for rules that say who: "role:name".')

    @model_validator(mode="after")
    def _has_one_key(self) -> Agent:
        if self.key is not None and self.key_sha256 is not None:
            raise ValueError("has both key and key_sha256; give one")
        return self

    @property
    def digest(self) -> str | None:
        """SHA-256 of the key in hexadecimal; None for an agent that can only be selected with --as."""
        if self.key is not None:
            return hashlib.sha256(self.key.get_secret_value().encode("utf-8")).hexdigest()
        return self.key_sha256


Grant: TypeAlias = Literal[Verb, "*"]
Verbs: TypeAlias = Annotated[
    tuple[Grant, ...],
    Field(min_length=1),
    BeforeValidator(verbs, json_schema_input_type=Grant | list[Grant]),
]


class Rule(Strict):
    who: Whos = Field(description='Agent ids, "role:name", "local" (no agent selected), or "*" for everybody.')
    may: Verbs = Field(description='What the rule is about: verbs, or "*" for all.')
    what: Patterns = Field(description="Patterns of addresses, such as file://sops/*, tool://search or ** for all.")
    effect: Literal["allow", "deny"] = Field(default="allow", description="A deny wins over every allow.")
    why: str = Field(default="", description="The reason, for `octavo explain`, the audit log and refusals.")
    hide: Flag = Field(default=False, description="A refusal by this rule looks as if nothing were there.")
    when: Demands | None = Field(default=None, description="The rule applies only if all of this holds.")
    unless: Demands | None = Field(default=None, description="The rule does not apply if all of this holds.")
    approve: People = Field(
        default=None,
        description="human: a human is asked before each act (invoke, write, delete); {by: 2}: two different people "
        "are; never: nobody is, also where one would be without a rule.",
    )

    @model_validator(mode="after")
    def _asks_calls_for_arguments(self) -> Rule:
        asks = any(demands is not None and demands.arguments for demands in (self.when, self.unless))
        if asks and not {"invoke", "render"}.issuperset(self.may):
            raise ValueError("asks for arguments, which only invoke and render have: name these alone under may")
        return self

    @model_validator(mode="after")
    def _hides_only_refusals(self) -> Rule:
        if self.hide and self.effect == "allow":
            raise ValueError("hide is about refusals; it needs effect: deny")
        return self

    @model_validator(mode="after")
    def _approves_only_acts(self) -> Rule:
        if self.approve is not None and self.effect == "deny":
            raise ValueError("approve is about what is allowed; a deny is never asked about")
        if self.approve is not None and not {"invoke", "write", "delete", "*"}.intersection(self.may):
            raise ValueError("approve is about acts; it needs invoke, write or delete in may")
        return self


class Label(Strict):
    what: Patterns = Field(description="Patterns of addresses, such as sop://hr/*.")
    confidentiality: Literal["public", "internal", "confidential", "secret"] | None = Field(
        default=None, description="How far it may go. A document can say that it is stricter, never that it is less."
    )
    integrity: Literal["trusted", "untrusted"] | None = Field(
        default=None, description="Whether it may be believed: untrusted is what strangers could have written."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Label:
        if self.confidentiality is None and self.integrity is None:
            raise ValueError("needs confidentiality, integrity or both")
        return self


class ResourceWords(Strict):
    uri: UriOrTemplate = Field(description="The address; with {variables} it is a template.")
    name: str | None = Field(default=None, description="What people call it.")
    description: str | None = Field(default=None, description="What it is for.")
    mime_type: MimeType | None = Field(default=None, alias="mimeType", description="Media type, over the source's own.")
    annotations: dict[str, Any] = Field(
        default={}, description="Annotations of the protocol (audience, priority, lastModified) and any others."
    )
    parameters: dict[str, dict[str, Any]] = Field(
        default={}, description="Of a template: a JSON Schema for each variable."
    )

    @model_validator(mode="after")
    def _has_parameters_only_as_a_template(self) -> ResourceWords:
        if self.parameters and not self.is_template:
            raise ValueError("has parameters, but no {variables} in its uri")
        return self

    @property
    def is_template(self) -> bool:
        return "{" in self.uri


def _check_language(tag: str) -> str:
    from octavo.core.languages import is_tag

    if not is_tag(tag):
        raise ValueError("must be a language tag, such as ko or en-GB")
    return tag


class Prompts(Strict):
    dirs: tuple[FilePath, ...] | None = Field(
        default=None,
        description="Folders of prompt files. Not given: the folder prompts beside this file, if there is one.",
    )
    starter: Flag = Field(default=False, description="Whether the prompts that come with Octavo are offered as well.")
    locales: tuple[Annotated[str, AfterValidator(_check_language)], ...] = Field(
        default=(), description="Languages for whoever asks for none, the most wanted first, such as [ko, en]."
    )
    embed: Size = written("256KiB", parse_size, "Largest resource that a prompt shows; larger ones are linked.")
    context_expires: Timeout = written("1h", parse_timeout, "How long a conversation is kept after its last use.")


ToolName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]


class Tools(Strict):
    dirs: tuple[FilePath, ...] = Field(
        default=(),
        description="Folders with tools of your own: Python functions and YAML declarations. What is changed there is "
        "loaded again. Python runs with all rights of the server.",
    )
    only: tuple[ToolName, ...] = Field(
        default=(), description="Offer these tools alone, of whatever toolset. Not given: all of the toolsets."
    )


def _check_module(module: str) -> str:
    if not all(part.isidentifier() for part in module.split(".")):
        raise ValueError("must be the name of a module, such as acme.octavo")
    return module


class Plugin(Strict):
    path: FilePath | None = Field(default=None, description="A Python file or package folder.")
    module: Annotated[str, AfterValidator(_check_module)] | None = Field(
        default=None, description="Instead of path: an installed module, such as acme.octavo."
    )
    entry_point: ToolName | None = Field(
        default=None, description="Instead of path: what an installed package offers by this name in octavo.tools."
    )
    protocol: Flag = Field(default=False, description="Whether the plugin may use raw features of the protocol.")

    @model_validator(mode="after")
    def _has_one_origin(self) -> Plugin:
        if sum(one is not None for one in (self.path, self.module, self.entry_point)) != 1:
            raise ValueError("needs exactly one of path, module and entry_point")
        return self


def _at_least(least: int) -> Callable[[int], int]:
    def check(size: int) -> int:
        if size < least:
            raise ValueError(f"must be at least {least} bytes")
        return size

    return check


class Limits(Strict):
    read: Size = written("1MiB", parse_size, "Largest content of one read.")
    answer: Annotated[Size, AfterValidator(_at_least(16_000))] = written(
        "64KB", parse_size, "Largest text in the answer of a built-in tool, at least 16KB. What is more comes in parts."
    )
    answer_tokens: Annotated[Count, Field(ge=4_000)] = Field(
        default=20_000, description="The same in tokens, by an estimate that is rather too high; at least 4000."
    )
    media: Size = written(
        "700KB", parse_size, "Largest picture or sound in the answer of a built-in tool; larger pictures are shrunk."
    )
    time: Timeout = written("10s", parse_timeout, "Longest time that one read or list may take.")
    page: Annotated[Count, Field(le=1000)] = Field(
        default=100, description="Entries on one page of a list of resources; tools and prompts come all at once."
    )
    per_principal: Limit = written(
        "50/s", parse_rate, 'Requests of one agent with a key, such as 50/s; "off" for none.'
    )
    in_flight: Count = Field(
        default=64,
        description="Requests of one agent that may be worked on at once. More wait, for limits.time at most.",
    )
    waiting: Count = Field(
        default=4096,
        description="Requests of everybody that may wait for a place. Nobody may have more waiting than there is room "
        "left, so one agent alone has half of it.",
    )
    subscriptions: Count = Field(default=100, description="Subscriptions of one agent.")
    sessions: Count = Field(
        default=100,
        description="Sessions of one agent over HTTP; callers without a key have 20 together. For one more, the one of "
        "the same agent that was idle for longest is ended.",
    )
    bytes_per_principal: ByteLimit = written(
        "off", parse_byte_rate, 'Content that one agent may be given, such as 20MB/s; "off" for no limit.'
    )
    total: Count = Field(
        default=512,
        description="Requests of everybody that may be worked on at once. As room gets scarce, agents with the most "
        "requests under way wait first.",
    )
    principals: dict[Who, Allowance] = Field(
        default={},
        description="Other limits for these callers: an agent, local, role:NAME, or * for all. The first that is about "
        "a caller holds.",
    )
    tools: dict[Name, ToolLimit] = Field(default={}, description="Limits for single tools, by name.")
    sources: dict[Name, SourceLimit] = Field(default={}, description="Limits for single sources, by name.")
    cache: Size = written("64MiB", parse_size, "Memory that the cache may use.")
    line: Size = written("4MiB", parse_size, "Longest message that is accepted from a client.")


class Tasks(Strict):
    after: Timeout = written(
        "500ms", parse_timeout, "How long a call of a tool that lasts may take before it becomes a task."
    )
    running: Count = Field(default=16, description="Tasks of one agent that may be worked on at once.")
    kept: Count = Field(default=1000, description="Tasks of one agent that are remembered, with those that have ended.")
    keep: Timeout = written("1h", parse_timeout, "How long the result of a task can be asked for.")


class RedactionRule(Strict):
    name: Name = Field(description="Stands in the mark that replaces what was found.")
    pattern: Expression = Field(description="A regular expression (RE2).")


PersonalData: TypeAlias = Literal["identity", "business", "payment", "email", "phone", "network", "address"]
# None: nothing at all, not even secrets.
HiddenIn: TypeAlias = Annotated[
    tuple[PersonalData, ...] | None,
    BeforeValidator(
        lambda value: None if value == "off" else value, json_schema_input_type=list[PersonalData] | Literal["off"]
    ),
]


class Redact(Strict):
    rules: Literal["default", "off"] = Field(
        default="default", description="Whether the built-in rules for secrets are used."
    )
    personal: tuple[PersonalData, ...] = Field(
        default=("identity",),
        description="Groups of personal data that are hidden everywhere: identity (Korean resident and foreigner "
        "numbers), business (Korean business numbers), payment (cards, IBAN), email, phone, network (public IP "
        "addresses), address (Korean postal addresses).",
    )
    sources: dict[Name, HiddenIn] = Field(
        default={},
        description="Further groups for what these sources give, by the name of the source; off for public content in "
        "which neither secrets nor personal data are hidden.",
    )
    principals: dict[Who, tuple[PersonalData, ...]] = Field(
        default={}, description="Further groups for these callers: an agent, role:NAME, or * for all."
    )
    skip: tuple[Name, ...] = Field(default=(), description="Built-in rules to leave out, by name.")
    extra: tuple[RedactionRule, ...] = Field(default=(), description="Rules of your own.")
    allow: tuple[Expression, ...] = Field(
        default=(), description="Regular expressions (RE2): what one of them matches as a whole is left as it is."
    )
    invisible: Literal["mark", "keep"] = Field(
        default="mark",
        description="Characters that nobody sees or that turn the order of a line round: shown as a marker, or kept.",
    )


class Checkpoints(Strict):
    path: FilePath = Field(
        description="A file on another disk or machine, in a folder that exists. The server only ever appends to it."
    )
    every: Timeout = written("10s", parse_timeout, "How often, while there are new records.")


MIN_AGE = 30 * 86_400.0


class Audit(Strict):
    sync: Literal["batch", "always"] = Field(
        default="batch", description="always: records are on the disk before an answer leaves; batch: in the file."
    )
    fail_closed: Flag = Field(default=True, description="Refuse requests while records cannot be written.")
    rotate: Size = written("64MiB", parse_size, "Begin a new file above this size.")
    keep: Annotated[Count, Field(ge=2)] = Field(
        default=16, description="How many files of one process are kept of those that are older than `min_age`."
    )
    min_age: Age | None = Field(
        default=None,
        description="Delete nothing whose last record is younger, whatever `keep` says. Default: 30d, or `max_age` "
        "where that is shorter.",
    )
    max_age: Age | None = Field(
        default=None, description="Delete files whose last record is older, such as 90d; looked at once a day."
    )
    checkpoints: Checkpoints | None = Field(
        default=None, description="Signed checkpoints of the chains, kept at a second place."
    )

    @property
    def least_age(self) -> float:
        """Seconds."""
        return min(MIN_AGE, self.max_age or MIN_AGE) if self.min_age is None else self.min_age

    @model_validator(mode="after")
    def _ages_in_order(self) -> Audit:
        if self.min_age is not None and self.max_age is not None and self.max_age < self.min_age:
            raise ValueError("max_age is shorter than min_age: nothing could be deleted by it")
        return self


def _expires(seconds: float) -> float:
    if not 1 <= seconds <= LONGEST_QUESTION:
        raise ValueError(f"must be between 1s and {LONGEST_QUESTION / 60:g}m")
    return seconds


class Approval(Strict):
    expires: Annotated[Timeout, AfterValidator(_expires)] = written(
        "10m", parse_timeout, "How long a question waits for its answer, and an answer for the call; 1h at most."
    )
    ask: Literal["client", "queue"] = Field(
        default="client",
        description="client: the person at the client is asked, where the client can; queue: only `octavo approvals` "
        "answers, for agents whose client answers by itself.",
    )
    after_untrusted: Timeout | None = Field(
        default=None,
        description="For so long after untrusted content was shown to a caller, a human is asked before each change "
        "that it makes and each call that may send something out, such as 8h. Default: never.",
    )


class State(Strict):
    path: FilePath | None = Field(
        default=None,
        description="Folder for audit log, secret and other state. Not given: .octavo beside this file.",
        json_schema_extra={"default": ".octavo"},
    )


class Feed(Strict):
    keep: Count = Field(default=100_000, description="Changes that can be asked for by number, the latest ones.")
    age: Age = Field(
        default=7 * 86_400.0,
        description="How long they can be asked for, such as 12h or 30d.",
        json_schema_extra={"default": "7d"},
    )
    catch_up: Flag = Field(
        default=False,
        description="Whether what changed while no server ran is also looked for in sources of more than 100,000 "
        "entries. Of smaller ones it always is.",
    )


class Serve(Strict):
    http: Http = Field(default_factory=Http, description="The HTTP transport; it is started by `octavo serve --http`.")
    error_codes: Literal["seed", "strict"] = Field(
        default="seed", description="Numbers of errors: those that older clients know, or only those of the protocol."
    )
    landlock: Literal["auto", "off", "require"] = Field(
        default="auto",
        description="Let the kernel refuse whatever the process does not need: auto, where it can and there are no "
        "plugins; require, with plugins too, or do not start; or off.",
    )
    traces: Annotated[str, AfterValidator(check_url)] | None = Field(
        default=None,
        description="Where spans are sent, such as http://127.0.0.1:4318/v1/traces of an OpenTelemetry collector. "
        "Needs the extra otel; every request then takes longer.",
    )
    lane: Flag = Field(default=True, description="Answer repeated reads on a short way. Off only to find faults.")


Toolset: TypeAlias = Literal["data", "files", "filesystem", "people", "process", "prompts", "seed", "web"]


class Config(Strict):
    """The configuration of Octavo."""

    version: Annotated[Literal[1], BeforeValidator(lambda value: None if isinstance(value, bool) else value)] = Field(
        default=1, description="The version of this format."
    )
    sources: dict[Name, AnyOptions] = Field(default={}, description="What is served, by a name of your choice.")
    agents: dict[AgentId, Agent] = Field(default={}, description="Who may connect, by id.")
    policy: tuple[Rule, ...] = Field(
        default=(),
        description="Who may do what. With no rules at all, whoever reaches the server reads everything exposed; "
        "with any rule, only what a rule allows.",
    )
    labels: tuple[Label, ...] = Field(
        default=(), description="Trust labels of resources, beside those that documents give themselves."
    )
    approval: Approval = Field(default_factory=Approval, description="How a human is asked before acts.")
    resources: tuple[ResourceWords, ...] = Field(
        default=(), description="Names and descriptions for single resources of any source."
    )
    prompts: Prompts = Field(default_factory=Prompts, description="Where prompts come from.")
    plugins: tuple[Plugin, ...] = Field(
        default=(), description="Python code with tools of your own. It runs with all rights of the server."
    )
    toolsets: tuple[Toolset, ...] = Field(
        default=("files",),
        description="Groups of built-in tools, offered if anything is exposed: files; filesystem, "
        "with the names and arguments of the official file server; seed, further names for the same; data, to "
        "convert, query, validate and profile data files. These need no source: people, asking the user and showing "
        "messages; process, the programs of commands; prompts, for models that are to use prompts themselves; web, "
        "what the section web allows.",
    )
    tools: Tools = Field(default_factory=Tools, description="Tools of your own, and which tools are offered.")
    web: Web = Field(default_factory=Web, description="Hosts that the toolset web and tools of your own may ask.")
    commands: Commands = Field(
        default_factory=Commands, description="Programs that the toolset process and tools of your own may run."
    )
    limits: Limits = Field(default_factory=Limits, description="How much, how long, how often.")
    tasks: Tasks = Field(default_factory=Tasks, description="Calls of tools that last.")
    redact: Redact = Field(default_factory=Redact, description="Secrets and personal data in what is served.")
    search: Search = Field(default_factory=Search, description="The ranked search over all sources.")
    audit: Audit = Field(default_factory=Audit, description="The record of every request.")
    state: State = Field(default_factory=State, description="Where Octavo keeps what it must remember.")
    store: Store = Field(
        default=SQLite(kind="sqlite"),
        description="Where what outlives the server is kept, beside the audit log. Without a state folder it is "
        "memory.",
    )
    shared: Shared | None = Field(
        default=None,
        description="What several servers on one store share and may lose: a server that has stored a change wakes the "
        "others. Without it they look by themselves, four times a second while somebody follows the feed.",
    )
    feed: Feed = Field(default_factory=Feed, description="The change feed, as it is kept in the store.")
    serve: Serve = Field(default_factory=Serve, description="How clients connect.")
