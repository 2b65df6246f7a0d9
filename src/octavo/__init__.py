"""Octavo: one MCP server for everything an organisation's agents need to know.

What stands here is what authors of sources, tools and plugins import: `from octavo import Ref, Entry, tool`. Every name
is imported when it is asked for. Whatever stands deeper is private, and may move with any release.
"""

from octavo.core.version import VERSION as _VERSION

__version__ = _VERSION

TYPE_CHECKING = False  # type checkers take it for true; `typing` itself need not be imported for that
if TYPE_CHECKING:
    from octavo import testing as testing
    from octavo.config.reference import FilePath as FilePath
    from octavo.config.reference import Secret as Secret
    from octavo.config.sections.source import Cache as Cache
    from octavo.config.sections.source import SourceOptions as SourceOptions
    from octavo.config.units import Size as Size
    from octavo.config.units import Time as Time
    from octavo.config.words import Count as Count
    from octavo.config.words import Flag as Flag
    from octavo.config.words import Scheme as Scheme
    from octavo.core.edit import Revision as Revision
    from octavo.core.errors import ApprovalRequired as ApprovalRequired
    from octavo.core.errors import Conflict as Conflict
    from octavo.core.errors import Forbidden as Forbidden
    from octavo.core.errors import InputRequired as InputRequired
    from octavo.core.errors import InternalError as InternalError
    from octavo.core.errors import InvalidParams as InvalidParams
    from octavo.core.errors import NotFound as NotFound
    from octavo.core.errors import OctavoError as OctavoError
    from octavo.core.errors import ProtocolError as ProtocolError
    from octavo.core.errors import RateLimited as RateLimited
    from octavo.core.errors import SourceUnavailable as SourceUnavailable
    from octavo.core.errors import Timeout as Timeout
    from octavo.core.errors import TooLarge as TooLarge
    from octavo.core.errors import Unauthenticated as Unauthenticated
    from octavo.core.errors import Unrecorded as Unrecorded
    from octavo.core.forms import Answer as Answer
    from octavo.core.kinds import AddressTemplate as AddressTemplate
    from octavo.core.kinds import Host as Host
    from octavo.core.kinds import Needs as Needs
    from octavo.core.kinds import Objection as Objection
    from octavo.core.kinds import Over as Over
    from octavo.core.kinds import SourceFolder as SourceFolder
    from octavo.core.kinds import SourceKind as SourceKind
    from octavo.core.parameters import refuse_unknown as refuse_unknown
    from octavo.core.ports.source import Aliases as Aliases
    from octavo.core.ports.source import Arranges as Arranges
    from octavo.core.ports.source import Completes as Completes
    from octavo.core.ports.source import Edits as Edits
    from octavo.core.ports.source import Filters as Filters
    from octavo.core.ports.source import Folders as Folders
    from octavo.core.ports.source import Levels as Levels
    from octavo.core.ports.source import Offers as Offers
    from octavo.core.ports.source import Rejects as Rejects
    from octavo.core.ports.source import Searches as Searches
    from octavo.core.ports.source import Source as Source
    from octavo.core.ports.source import Stamps as Stamps
    from octavo.core.ports.source import Suggests as Suggests
    from octavo.core.ports.source import SuggestsMore as SuggestsMore
    from octavo.core.ports.source import Undoes as Undoes
    from octavo.core.ports.source import Watches as Watches
    from octavo.core.ports.source import Writes as Writes
    from octavo.core.preconditions import Shown as Shown
    from octavo.core.preconditions import check as _check
    from octavo.core.query import ContentQuery as ContentQuery
    from octavo.core.query import NameQuery as NameQuery
    from octavo.core.ref import Ref as Ref
    from octavo.core.tools import Audio as Audio
    from octavo.core.tools import Embedded as Embedded
    from octavo.core.tools import Hints as Hints
    from octavo.core.tools import Image as Image
    from octavo.core.tools import Link as Link
    from octavo.core.tools import PromptArgument as PromptArgument
    from octavo.core.tools import PromptInfo as PromptInfo
    from octavo.core.tools import PromptMessage as PromptMessage
    from octavo.core.tools import PromptResult as PromptResult
    from octavo.core.tools import Text as Text
    from octavo.core.tools import ToolResult as ToolResult
    from octavo.core.values import Change as Change
    from octavo.core.values import Content as Content
    from octavo.core.values import Edited as Edited
    from octavo.core.values import Entry as Entry
    from octavo.core.values import Page as Page
    from octavo.core.values import Past as Past
    from octavo.core.values import Suggestion as Suggestion
    from octavo.core.values import Template as Template
    from octavo.core.values import Undone as Undone
    from octavo.text.revise import revise as revise
    from octavo.tools.context import ToolContext as ToolContext
    from octavo.tools.decorator import tool as tool
    from octavo.tools.plugins import Plugin as Plugin

    check_hidden = _check

_NAMES = {  # the same, by the modules where they stand
    "octavo": "testing",
    "octavo.config.reference": "FilePath Secret",
    "octavo.config.sections.source": "Cache SourceOptions",
    "octavo.config.units": "Size Time",
    "octavo.config.words": "Count Flag Scheme",
    "octavo.core.forms": "Answer",
    "octavo.core.edit": "Revision",
    "octavo.core.errors": (
        "ApprovalRequired Conflict Forbidden InputRequired InternalError InvalidParams NotFound "
        "OctavoError ProtocolError RateLimited SourceUnavailable Timeout TooLarge Unauthenticated "
        "Unrecorded"
    ),
    "octavo.core.preconditions": "check_hidden Shown",
    "octavo.core.kinds": "AddressTemplate Host Needs Objection Over SourceFolder SourceKind",
    "octavo.core.values": ("Change Content Edited Entry Page Past Suggestion Template Undone"),
    "octavo.core.parameters": "refuse_unknown",
    "octavo.core.ports.source": (
        "Aliases Arranges Completes Edits Filters Folders Levels Offers Rejects Searches Source Stamps "
        "Suggests SuggestsMore Undoes Watches Writes"
    ),
    "octavo.core.query": "ContentQuery NameQuery",
    "octavo.core.ref": "Ref",
    "octavo.core.tools": (
        "Audio Embedded Hints Image Link PromptArgument PromptInfo PromptMessage PromptResult Text ToolResult"
    ),
    "octavo.text.revise": "revise",
    "octavo.tools.decorator": "tool",
    "octavo.tools.context": "ToolContext",
    "octavo.tools.plugins": "Plugin",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}
_OTHERWISE = {"check_hidden": "check"}  # what is called otherwise where it stands


if not TYPE_CHECKING:  # which would take it for leave to import any name

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        if name == "testing":
            found: object = import_module("octavo.testing")
        else:
            found = getattr(import_module(_PLACES[name]), _OTHERWISE.get(name, name))
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(_PLACES)


del TYPE_CHECKING
