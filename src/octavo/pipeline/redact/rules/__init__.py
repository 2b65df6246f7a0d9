"""What counts as a secret, and the engine that finds it.

`clouds`, `forges`, `services`, `secrets` and `personal` hold the rules, `book` binds them; `checks` and `numbers`
are the second looks that a pattern cannot take; `engine` runs them and `shapes` keeps JSON and YAML readable;
`invisible` is about characters that nobody sees. A rule names itself in the mark that takes the secret's place, so a
name is part of the interface: `[redacted:aws-access-key:1f0c9a7e]`.
"""
