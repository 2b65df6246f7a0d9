"""What counts as a secret, and the engine that finds it.

`secrets` and `personal` hold the rules, `checks` the second looks that a pattern cannot take, `engine`
runs them. A rule names itself in the mark that takes the secret's place, so a name is part of the
interface: `[redacted:aws-access-key:1f0c9a7e]`.
"""
