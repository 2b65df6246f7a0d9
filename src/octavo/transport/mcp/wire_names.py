"""Names that Octavo adds to protocol messages, all under one prefix in `_meta`."""

from __future__ import annotations

METADATA = "dev.octavo/metadata"
EVENT = "dev.octavo/event"
FILTER = "dev.octavo/filter"
PARAMETERS = "dev.octavo/parameters"
INPUT_SCHEMA = "dev.octavo/inputSchema"
ROLE = "dev.octavo/role"
LOCALE = "dev.octavo/locale"
TITLES = "dev.octavo/titles"
PERMISSIONS = "dev.octavo/permissions"
ERROR = "dev.octavo/error"
ANNOTATIONS = "dev.octavo/annotations"
ETAG = "dev.octavo/etag"
ENCODING = "dev.octavo/encoding"
UNAVAILABLE = "dev.octavo/unavailable"

RESULT_SIZE = "anthropic/maxResultSizeChars"  # of Claude Code; others pass it over

META_EXTENSION = "dev.octavo/meta"
SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
SERVED = (
    METADATA,
    EVENT,
    FILTER,
    PARAMETERS,
    INPUT_SCHEMA,
    ROLE,
    LOCALE,
    TITLES,
    PERMISSIONS,
    ERROR,
    ANNOTATIONS,
    ETAG,
    ENCODING,
    UNAVAILABLE,
)

LIST_CHANGED = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
TASKS = "notifications/tasks"

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
MODERN = "2026-07-28"
