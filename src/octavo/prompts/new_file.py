"""A prompt file to begin with."""

from __future__ import annotations

import json

from octavo.core.errors import InvalidParams

_BEGUN = """\
# What may stand here: docs/prompts.md. Whether it holds: octavo check.
id: {id}
title: {title}
description: {title}
inputSchema:
  type: object
  properties:
    uri: {{type: string, format: uri, description: Address of what this is about}}
    tone: {{type: string, enum: [plain, formal], default: plain, description: How the answer sounds}}
    note: {{type: string, description: Anything to add}}
  required: [uri]
messages:
  en:
    - role: system
      content:
        - {{type: text, text: "You work from what you are given and invent nothing. Your tone is {{{{tone}}}}."}}
    - role: user
      content:
        - type: text
          text: "Say what is to be done.{{% if note %}} Note: {{{{ note }}}}{{% endif %}}"
        - {{type: resource, uri: "{{{{uri}}}}"}}
  ko:
    - role: system
      content:
        - {{type: text, text: "주어진 것만으로 일하고 지어내지 않습니다. 말투: {{{{tone}}}}."}}
    - role: user
      content:
        - type: text
          text: "할 일을 적습니다.{{% if note %}} 덧붙임: {{{{ note }}}}{{% endif %}}"
        - {{type: resource, uri: "{{{{uri}}}}"}}
"""


def begun(name: str, title: str) -> str:
    """Raises InvalidParams for a name that no file of a prompt can have."""
    if not name or name.startswith(".") or len(name) > 100 or not all(c.isalnum() or c in "_-" for c in name):
        raise InvalidParams("The name of a prompt is 1 to 100 letters, digits, _ or -")
    if not title.strip() or not title.isprintable():
        raise InvalidParams("The title is one line of text")
    # A JSON string is a YAML string.
    return _BEGUN.format(id=json.dumps(name, ensure_ascii=False), title=json.dumps(title, ensure_ascii=False))
