"""Every call from the command line into the composition root and the rooms behind it, in one place."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from octavo.cli._progress import Shows
from octavo.cli._shared import LOCAL
from octavo.config.load import Loaded, prompt_directories, state_directory
from octavo.config.problems import Problem
from octavo.config.units import Bind
from octavo.core.arguments import PLAIN, Arguments, SearchArguments, WatchArguments
from octavo.core.clock import SystemClock, iso
from octavo.core.delivery import Delivery, spellings
from octavo.core.errors import Conflict, InvalidParams, NotFound, OctavoError
from octavo.core.findings import Findings
from octavo.core.model import Change, Content, Entry, Op, shown
from octavo.core.ports import Reply, expected, page_of
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.surface import ToolResult

if TYPE_CHECKING:
    from octavo.app import Octavo
    from octavo.app.authoring import Created
    from octavo.app.deciding import Difference, Explained, Otherwise, Question, Wrong
    from octavo.app.finding import Finding
    from octavo.app.idle_tools import Idle
    from octavo.app.scanning import Sighting
    from octavo.app.sights import Sight
    from octavo.app.unmatched import Unmatched
    from octavo.config.table import Table
    from octavo.core.approval import Approval, Verdict
    from octavo.core.approval import Question as ToApprove
    from octavo.core.asking import Action, Answer, Asked, Form
    from octavo.core.surface import PromptInfo, PromptResult, ToolInfo
    from octavo.sources.catalog.handbook import Pages
    from octavo.stores.approvals import ApprovalFile
    from octavo.stores.keys import StoredKey
    from octavo.stores.questions import QuestionFile
    from octavo.stores.verify import Report

T = TypeVar("T")

LOOK = 0.2  # seconds between two looks at the audit log, or at how far something is


def serve_stdio(loaded: Loaded, *, as_who: str | None, ready: Callable[[], None]) -> None:
    from octavo.app import serve

    serve.serve_stdio(loaded, as_who=as_who, ready=ready)


def serve_http(loaded: Loaded, *, bind: Bind, as_who: str | None, no_auth: bool, ready: Callable[[str], None]) -> None:
    from octavo.app import serve

    serve.serve_http(loaded, bind=bind, as_who=as_who, no_auth=no_auth, ready=ready)


def explained(loaded: Loaded, question: Question) -> Explained:
    """What the policy says, and by which rule. Leaves no state and no audit record behind."""
    from octavo.app.deciding import explain

    return _inside(loaded, lambda house: explain(house.works, question), leaves_traces=False)


def tested(loaded: Loaded, table: Table) -> tuple[int, list[Wrong]]:
    """How many decisions there were, and which are not as the table says."""
    from octavo.app.deciding import tested

    return _inside(loaded, lambda house: tested(house.works, table), leaves_traces=False)


def policy_differences(old: Loaded, new: Loaded) -> tuple[list[Difference], list[Otherwise]]:
    from octavo.app.deciding import differences

    return _inside(new, lambda house: differences(house.works, old, new), leaves_traces=False)


def listed(loaded: Loaded, who: str | None, uri: str | None) -> tuple[list[Entry], list[str]]:
    """Everything visible below an address, and the sources that could not be asked."""

    async def ask(house: Octavo) -> tuple[list[Entry], list[str]]:
        await _read_once(house)
        entries: list[Entry] = []
        unavailable: list[str] = []
        cursor: str | None = None
        while True:
            page = page_of(await _ask(house, who, "list", uri, cursor))
            entries += page.items
            unavailable += page.unavailable
            cursor = page.cursor
            if cursor is None:
                return entries, unavailable

    return _inside(loaded, ask)


def read(loaded: Loaded, who: str | None, uri: str) -> Content:
    async def ask(house: Octavo) -> Content:
        await _read_once(house)
        return expected(await _ask(house, who, "read", uri), Content)

    return _inside(loaded, ask)


def found(
    loaded: Loaded, who: str | None, query: TextQuery, uri: str | None, limit: int, shows: Shows, *, kept: bool
) -> Findings:
    """The best documents: by the index of a server that runs here, or after everything was looked at. `kept`: by what
    the index held when it was last compared."""

    async def ask(house: Octavo) -> Findings:
        if loaded.config.search.enabled and not await house.searching.borrow(kept=kept):
            await _read_once(house)
            await _completed(house, shows)
        return expected(await _ask(house, who, "search", uri, limit=limit, arguments=SearchArguments(query)), Findings)

    return _inside(loaded, ask)


async def _read_once(house: Octavo) -> None:
    """Whoever asks once is answered when the catalogs are there, and not told to come again."""
    if house.works.catalogs is not None:
        await house.works.catalogs.read()


async def _completed(house: Octavo, shows: Shows) -> int:
    """The number of documents, once all were looked at; how far that is, is shown meanwhile."""
    looking = asyncio.ensure_future(house.searching.complete())
    while not looking.done():
        await asyncio.wait({looking}, timeout=LOOK)
        shows(done=house.searching.looked)
    return looking.result()


def rebuilt(loaded: Loaded, shows: Shows) -> int:
    """Makes the index anew: the number of documents. Raises Conflict while a server uses it."""
    from octavo.stores.places import Place

    place = Place.take(state_directory(loaded) / "search", most=1)
    if place is None:
        raise Conflict("A server that runs here uses the index: stop it first, or let it be, it follows all changes")
    for file in place.path.parent.glob("*.db*"):
        file.unlink()
    place.leave()
    return _inside(loaded, lambda house: _completed(house, shows))


def watched(
    loaded: Loaded,
    who: str | None,
    pattern: str,
    show: Callable[[Change, str], None],
    *,
    ready: Callable[[], None],
    count: int | None,
) -> None:
    """Shows changes that the pattern matches and the policy lets `who` see; `count` of them, or for ever. With the
    address in the words that were asked for, if it was one address."""

    async def ask(house: Octavo) -> None:
        works = house.works
        principal = works.identity.launched(who)
        call = works.calls.watch(principal, pattern)
        glob = works.policy.usual(call.given(WatchArguments).glob)
        heard: asyncio.Queue[Change] = asyncio.Queue()
        leave = house.feed.subscribe(heard.put_nowait)
        try:
            await works.ask(call._replace(ref=glob.literal, arguments=WatchArguments(glob)))
            house.ledger.flush()
            ready()
            left = count
            while left != 0:
                told = Delivery(works, await heard.get()).told(
                    principal,
                    wanted=lambda ref, entry: any(map(glob.matches, spellings(works, ref, shown(ref, entry)))),
                )
                if told is not None:
                    show(told, pattern if glob.exact else "")
                    left = None if left is None else left - 1
            house.note(principal.id, f"watch {pattern}", "end")
        finally:
            leave()

    _inside(loaded, ask)


def scanned(loaded: Loaded, uri: str | None, shows: Shows) -> list[Sighting]:
    """What redaction would hide, in the order of the list. Leaves no state and no audit record behind."""
    from octavo.app.scanning import scan

    async def ask(house: Octavo) -> list[Sighting]:
        scope = None if uri is None else Ref.parse(uri)
        return [one async for one in scan(house.works, scope, lambda number: shows(done=number))]

    return _inside(loaded, ask, leaves_traces=False)


def audit_directory(loaded: Loaded) -> Path:
    """Raises NotFound where nothing was ever recorded."""
    path = state_directory(loaded)
    if not (path / "audit").is_dir():
        raise NotFound(f"There is no audit log in {path} yet")
    return path / "audit"


def verified(loaded: Loaded, checkpoints: Path | None) -> tuple[Path, Report]:
    """With the checkpoints that are named, or those of the configuration. Raises NotFound for either."""
    from octavo.stores.checkpoints import read_checkpoints
    from octavo.stores.state import StateDirectory
    from octavo.stores.verify import verify

    directory, state = audit_directory(loaded), StateDirectory.known(state_directory(loaded))
    configured, min_age = loaded.config.audit.checkpoints, loaded.config.audit.least_age
    file = checkpoints or (None if configured is None else configured.path)
    if file is None:
        return directory, verify(directory, state.key("audit"), min_age=min_age)

    def look() -> Report:
        points = read_checkpoints(file, state.key("checkpoint"))
        return verify(directory, state.key("audit"), points, min_age=min_age)

    try:
        report = look()
        # Beside a running server: what retention deleted meanwhile is announced by now.
        return directory, report if report.ok else look()
    except OSError as error:
        raise NotFound(f"The audit log and its checkpoints cannot be read: {error.strerror}") from None


def issued(loaded: Loaded, agent: str, *, seconds: float, overlap: float) -> tuple[str, StoredKey]:
    """A new key, which is told now and never again."""

    async def ask(house: Octavo) -> tuple[str, StoredKey]:
        now, keys = SystemClock.wall(), house.key_file
        with _changing(house, "keys new", agent=agent) as learnt:
            text, made = keys.issue(agent, now=now, expires=now + seconds, overlap=overlap)
            learnt["key"] = made.id
        return text, made

    return _inside(loaded, ask)


def revoked(loaded: Loaded, name: str) -> StoredKey:
    async def ask(house: Octavo) -> StoredKey:
        keys = house.key_file
        with _changing(house, "keys revoke", key=name) as learnt:
            gone = keys.revoke(name)
            learnt["agent"] = gone.agent
        return gone

    return _inside(loaded, ask)


@contextmanager
def _changing(house: Octavo, what: str, **facts: str) -> Iterator[dict[str, str]]:
    """Around what an operator changes: on record before and after, the latter with what is learnt meanwhile."""
    begun, outcome = house.begin(LOCAL, what, **facts), "crash"
    learnt: dict[str, str] = {}
    try:
        yield learnt
        outcome = "ok"
    except OctavoError as error:
        outcome = error.reason
        raise
    finally:
        house.note(LOCAL, what, outcome, begun=begun, **learnt, **facts)


def known_keys(loaded: Loaded) -> list[dict[str, str | None]]:
    """Those of the configuration, then those of the key file."""
    from octavo.stores.keys import KeyFile

    rows: list[dict[str, str | None]] = [
        {"id": "configuration", "agent": name, "state": "live", "created": None, "expires": None}
        for name, agent in loaded.config.agents.items()
        if agent.digest is not None
    ]
    for key in KeyFile(state_directory(loaded)).read():
        state = "unused" if key.agent not in loaded.config.agents else "live"
        rows.append(
            {
                "id": key.id,
                "agent": key.agent,
                "state": state if key.live(SystemClock.wall()) else "expired",
                "created": iso(key.created),
                "expires": None if key.expires is None else iso(key.expires),
            }
        )
    return rows


def standing_questions(loaded: Loaded) -> Sequence[Asked]:
    """Those that are not used and have not expired. Changes nothing."""
    return _questions(loaded).standing()


def named_question(loaded: Loaded, name: str) -> Asked:
    """Raises NotFound."""
    return _questions(loaded).named(name)


def _questions(loaded: Loaded) -> QuestionFile:
    from octavo.stores.questions import QuestionFile

    return QuestionFile(state_directory(loaded), lambda step, asked: None)


def answered_question(loaded: Loaded, name: str, action: Action, content: Mapping[str, Any]) -> Asked:
    """Raises NotFound or Conflict for one that cannot be answered any more, InvalidParams for what does not fit."""
    from octavo.core.asking import Answer

    async def ask(house: Octavo) -> Asked:
        with _changing(house, f"questions {action}", question=name):
            return _questions(loaded).answer(name, LOCAL, Answer(action, content))

    return _inside(loaded, ask)


def standing_approvals(loaded: Loaded) -> Sequence[Approval]:
    """Those that are not used and have not expired. Changes nothing."""
    return _approvals(loaded).standing()


def named_approval(loaded: Loaded, name: str) -> Approval:
    """Raises NotFound."""
    return _approvals(loaded).named(name)


def _approvals(loaded: Loaded) -> ApprovalFile:
    from octavo.stores.approvals import ApprovalFile

    return ApprovalFile(state_directory(loaded), lambda step, approval, person: None)


def answered_approval(loaded: Loaded, name: str, *, by: str, user: str, allow: bool) -> Approval:
    """Raises NotFound or Conflict for one that cannot be answered any more; that is recorded as well."""

    async def ask(house: Octavo) -> Approval:
        approvals = house.approvals
        with _changing(house, f"approvals {'allow' if allow else 'deny'}", approval=name, by=by, user=user):
            return approvals.answer(name, by, allow=allow)

    return _inside(loaded, ask)


def prompt_problems(loaded: Loaded) -> tuple[list[Problem], list[Problem]]:
    """Prompt files that would not load, and what else is in their folders."""
    from octavo.app.essentials import changeable
    from octavo.prompts.loader import load
    from octavo.tools.schema import compile_schema

    _, problems = load(prompt_directories(loaded), compile_schema, changeable=changeable(loaded))
    wrong = [Problem(one.path, "", one.reason, line=one.line) for one in problems if not one.remark]
    return wrong, [Problem(one.path, "", one.reason) for one in problems if one.remark]


def tool_problems(loaded: Loaded) -> list[Problem]:
    """Tools of the operator's folders that would be left out. Runs their files, as the server would."""
    if not loaded.config.tools.dirs:
        return []
    from contextlib import AsyncExitStack

    from octavo.app.built_in import built_in_tools
    from octavo.app.essentials import changeable
    from octavo.app.reaching import Reaching
    from octavo.core.clock import SystemClock
    from octavo.tools.folder import load_tools
    from octavo.tools.registry import ToolRegistry

    # Nothing is run or asked, so that nothing is opened that would have to be closed.
    reaching, registry = Reaching(loaded, SystemClock(), AsyncExitStack()), ToolRegistry()
    exposed = [one.scheme for one in loaded.config.sources.values() if one.expose]
    for tool in (*built_in_tools(loaded.config, exposed=exposed), *reaching.tools()):
        registry.register(tool)
    by_clients = changeable(loaded)
    problems = load_tools(loaded.config.tools.dirs, registry.register, reaching.outside(), changeable=by_clients)
    return [Problem(problem.path, "", problem.reason, line=problem.line) for problem in problems]


class _Terminal:
    """The client that waits is whoever sits at the terminal. Questions and approvals are answered by commands of their
    own, here as everywhere."""

    asks = lasts = waits = False

    def __init__(
        self, locale: str | None = None, *, progress: Callable[[float, float | None, str | None], None] | None = None
    ) -> None:
        self.locales: Sequence[str] = () if locale is None else (locale,)
        self._progress = progress

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress is not None:
            self._progress(value, total, message)

    @property
    def wire(self) -> Any:
        raise InvalidParams("No client waits for this call, so there is no wire")

    async def ask(self, form: Form) -> Answer | None:
        return None

    async def approve(self, question: ToApprove) -> Verdict | None:
        return None


def invoked(
    loaded: Loaded,
    who: str | None,
    name: str,
    arguments: Callable[[ToolInfo | None], dict[str, Any]],
    progress: Callable[[float, float | None, str | None], None],
) -> ToolResult:
    """What a tool answers an agent. Raises what is no answer: an unknown tool, a refusal, wrong arguments."""

    async def ask(house: Octavo) -> ToolResult:
        works = house.works
        given = arguments(works.tools.tool(name))
        call = works.calls.invoke(works.identity.launched(who), name, given, _Terminal(progress=progress))
        try:
            result = expected(await works.ask(call), ToolResult)
        finally:
            house.ledger.flush()
        return result

    with redirect_stdout(sys.stderr):  # where what a tool prints goes when it is served
        return _inside(loaded, ask)


def examined(loaded: Loaded) -> list[Finding]:
    """What this machine gives."""
    from octavo.app.examination import examine

    found = [*examine(loaded)]
    if any(one.state == "problem" for one in found):
        return found  # sources would only fail for the same reasons
    from octavo.app.smells import unreachable

    return [*found, *_inside(loaded, lambda house: unreachable(house.works, loaded.config), leaves_traces=False)]


def offered(loaded: Loaded, who: str | None) -> list[dict[str, Any]]:
    """The tools that a caller sees, in order, with what each adds to a conversation. Leaves no record behind."""
    from octavo.transport.mcp import shapes

    async def ask(house: Octavo) -> list[dict[str, Any]]:
        entries: list[Entry] = []
        cursor: str | None = None
        while True:
            page = page_of(await _ask(house, who, "list", "tool://", cursor))
            entries += page.items
            cursor = page.cursor
            if cursor is None:
                break
        known = (house.works.tools.tool(entry.ref.name) for entry in entries)
        return [
            {
                "name": info.name,
                "description": info.description,
                "readOnly": info.hints.read_only,
                "tokens": -(-len(json.dumps(shapes.tool(info), ensure_ascii=False).encode()) // 4),
            }
            for info in known
            if info is not None
        ]

    return _inside(loaded, ask, leaves_traces=False)


def calls(loaded: Loaded, show: Callable[[dict[str, Any]], bool], *, ready: Callable[[], None]) -> None:
    """Shows records of all servers on this state as they are written, until `show` says that it is enough."""
    from octavo.stores.calls import Recent

    recent = Recent(state_directory(loaded) / "audit")
    ready()
    while True:
        for record in recent.fresh():
            if not show(record):
                return
        time.sleep(LOOK)


def catalog_problems(loaded: Loaded, shows: Shows) -> tuple[list[Problem], list[Problem], dict[str, str]]:
    """What is wrong with the files of catalogs, and what is only odd, by file and line. What prompts refer to, too.
    And the folder of each catalog in its store."""

    async def ask(house: Octavo) -> tuple[list[Problem], list[Problem], dict[str, str]]:
        wrong, odd, folders = list[Problem](), list[Problem](), dict[str, str]()
        catalogs = house.works.catalogs
        by_name = {} if catalogs is None else catalogs.by_name
        for number, (name, catalog) in enumerate(by_name.items(), 1):
            shows(what=name, done=f"{number}/{len(by_name)}")
            folders[name] = catalog.declaration.path
            if why := await catalog.serves_nothing():
                wrong.append(Problem(str(loaded.file), f"sources.{name}", why))
            for one in await catalog.problems():
                file = _path(loaded, name, one.file)
                (wrong if one.serious else odd).append(Problem(file, "", one.message, line=one.line, group=one.group))
        odd.extend(out_of_reach(loaded))
        if catalogs is not None:
            odd.extend(_prompts_that_lead_nowhere(loaded, await catalogs.pages()))
        odd.extend([_unmatched(loaded, one) async for one in unmatched(house.works)])
        odd.extend(_idle(loaded, one) for one in idle_tools(house.works))
        return wrong, odd, folders

    from octavo.app.idle_tools import idle_tools
    from octavo.app.unmatched import unmatched
    from octavo.cli._out_of_reach import out_of_reach

    if not loaded.config.policy and not any(one.over is not None for one in loaded.config.sources.values()):
        return [], [*out_of_reach(loaded)], {}
    return _inside(loaded, ask, leaves_traces=False)


def _unmatched(loaded: Loaded, one: Unmatched) -> Problem:
    near = f"did you mean {one.nearest}?" if one.nearest else "a deny of what is not there yet is fine"
    return Problem(str(loaded.file), f"policy[{one.rule}].what", f"{one.pattern} matches nothing today", near)


def _idle(loaded: Loaded, one: Idle) -> Problem:
    verbs, tools = ", ".join(one.verbs), ", ".join(one.tools)
    hint = f"allow {verbs} in a rule, or deny invoke on {', '.join(f'tool://{name}' for name in one.tools)}"
    message = f"is shown {tools}, which it can never use: no rule allows it {verbs}"
    line = loaded.line("agents", one.agent)
    group = "an agent is shown tools that it can never use"
    return Problem(str(loaded.file), f"agents.{one.agent}", message, hint, line, group=group)


def trial(loaded: Loaded, agents: Sequence[str], shows: Shows) -> tuple[list[Problem], Mapping[str, Sight]]:
    """What `octavo check` would find wrong, and what the agents would see. Leaves nothing behind."""
    from octavo.app.sights import sights

    wrong = [*catalog_problems(loaded, shows)[0], *prompt_problems(loaded)[0]]
    return wrong, _inside(loaded, lambda house: sights(house.works, agents), leaves_traces=False)


def _prompts_that_lead_nowhere(loaded: Loaded, pages: Pages) -> Iterator[Problem]:
    from octavo.prompts.loader import load
    from octavo.sources.catalog.links import nowhere
    from octavo.tools.schema import compile_schema

    for template in load(prompt_directories(loaded), compile_schema)[0]:
        for line, uri in nowhere(Path(template.origin).read_text(encoding="utf-8-sig"), pages):
            said = "an address leads nowhere"
            yield Problem(template.origin, "", f"{uri} leads nowhere", line=line, group=said)


def created_prompt(loaded: Loaded, name: str, title: str) -> Path:
    """A new prompt file, in the first folder of prompts. Raises InvalidParams and Conflict."""
    from octavo.prompts.beginning import begun

    text = begun(name, title)
    folders = loaded.config.prompts.dirs
    if folders == ():
        raise InvalidParams("prompts.dirs names no folder: name one, or leave it out for prompts beside octavo.yaml")
    folder = folders[0] if folders else loaded.base / "prompts"
    if any(folder.glob(f"{name}.*")):
        raise Conflict(f"A prompt file of the name {name} is there already")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    return path


def prompts(loaded: Loaded, who: str | None) -> list[PromptInfo]:
    """Those that `who` may use, by name."""
    entries, _ = listed(loaded, who, "prompt://")

    async def ask(house: Octavo) -> list[PromptInfo]:
        principal = house.works.identity.launched(who)
        known = (house.works.prompt_info(entry.ref.name, principal) for entry in entries)
        return [info for info in known if info is not None]

    return _inside(loaded, ask, leaves_traces=False)


def rendered(loaded: Loaded, who: str | None, name: str, given: dict[str, str], locale: str | None) -> PromptResult:
    """Raises InvalidParams also for a prompt of a plugin that speaks the raw protocol: there is nobody who hears it."""
    from octavo.core.surface import PromptResult

    async def ask(house: Octavo) -> PromptResult:
        works = house.works
        call = works.calls.render(works.identity.launched(who), name, given, _Terminal(locale))
        try:
            result = await works.ask(call._replace(timeout=works.limits.timeout))
        finally:
            house.ledger.flush()
        if not isinstance(result, PromptResult):
            raise InvalidParams(f"The prompt {name} speaks the raw protocol: only a client can get it")
        return result

    return _inside(loaded, ask)


def prompt_shape(result: PromptResult) -> dict[str, Any]:
    from octavo.tools.builtin.prompting import shape

    return shape(result)


def created(loaded: Loaded, kind: str, name: str, title: str) -> Created:
    """A new file in a catalog, and where it stands."""
    from octavo.app.authoring import create

    return _inside(loaded, lambda house: create(house, loaded, kind, name, title), leaves_traces=False)


def _path(loaded: Loaded, catalog: str, file: str) -> str:
    """A file of a catalog, as whoever mends it finds it."""
    options = loaded.config.sources[catalog]
    store = options if options.over is None else loaded.config.sources[options.over.store]
    places = [folder.path / file for folder in store.folders if folder.files]
    if not places:
        return file
    return str(next((place for place in places if place.exists()), places[0]))


async def _ask(
    house: Octavo,
    who: str | None,
    op: Op,
    uri: str | None,
    cursor: str | None = None,
    limit: int | None = None,
    arguments: Arguments = PLAIN,
) -> Reply:
    """One request, recorded before its answer is used, like every client's."""
    works = house.works
    call = works.calls.at(op, works.identity.launched(who), uri, arguments, cursor=cursor, limit=limit)
    try:
        return await works.ask(call)
    finally:
        house.ledger.flush()


def _inside(loaded: Loaded, ask: Callable[[Octavo], Awaitable[T]], *, leaves_traces: bool = True) -> T:
    from octavo.app import Octavo
    from octavo.stores.state import StateDirectory

    async def main() -> T:
        async with Octavo(loaded, state=None if leaves_traces else StateDirectory.in_memory()) as house:
            return await ask(house)

    return asyncio.run(main())
