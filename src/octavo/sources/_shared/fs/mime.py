"""Media types by name. Our own table: the operating system's differs from machine to machine, and has
`video/mp2t` for TypeScript and nothing for YAML."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "application/octet-stream"

_TEXT: Final = {
    "text/plain": "txt text log lst tf hcl proto thrift dockerfile",
    "text/markdown": "md markdown mdx mkd",
    "text/x-rst": "rst",
    "text/asciidoc": "adoc asciidoc",
    "text/html": "html htm",
    "text/css": "css",
    "text/x-scss": "scss sass less",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/javascript": "js mjs cjs",
    "text/jsx": "jsx",
    "text/typescript": "ts mts cts",
    "text/tsx": "tsx",
    "text/x-vue": "vue svelte astro",
    "text/x-python": "py pyi pyw",
    "text/x-java": "java",
    "text/x-kotlin": "kt kts",
    "text/x-scala": "scala sc",
    "text/x-groovy": "groovy gradle",
    "text/x-go": "go",
    "text/x-rust": "rs",
    "text/x-c": "c h",
    "text/x-c++": "cc cpp cxx hpp hh hxx",
    "text/x-csharp": "cs",
    "text/x-objectivec": "m mm",
    "text/x-swift": "swift",
    "text/x-dart": "dart",
    "text/x-ruby": "rb rake gemspec",
    "text/x-php": "php",
    "text/x-perl": "pl pm",
    "text/x-lua": "lua",
    "text/x-r": "r",
    "text/x-julia": "jl",
    "text/x-haskell": "hs",
    "text/x-elixir": "ex exs",
    "text/x-erlang": "erl hrl",
    "text/x-clojure": "clj cljs edn",
    "text/x-zig": "zig",
    "text/x-shellscript": "sh bash zsh fish",
    "text/x-powershell": "ps1 psm1",
    "text/x-batch": "bat cmd",
    "text/x-makefile": "mk cmake",
    "text/x-diff": "diff patch",
    "text/x-tex": "tex bib",
    "text/x-ini": "ini cfg conf properties editorconfig",
    "text/vtt": "vtt srt",
    "text/calendar": "ics",
    "application/json": "json jsonc json5 ipynb webmanifest map",
    "application/jsonl": "jsonl ndjson",
    "application/yaml": "yaml yml",
    "application/toml": "toml lock",
    "application/xml": "xml xsd xsl xslt plist",
    "application/sql": "sql",
    "application/graphql": "graphql gql",
    "image/svg+xml": "svg",
}
_IMAGES: Final = {
    "image/png": "png",
    "image/jpeg": "jpg jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/tiff": "tif tiff",
    "image/x-icon": "ico",
    "application/pdf": "pdf",
}
_OTHER: Final = {
    "application/zip": "zip",
    "application/gzip": "gz tgz",
    "application/x-tar": "tar",
    "application/x-bzip2": "bz2",
    "application/x-xz": "xz",
    "application/zstd": "zst",
    "application/x-7z-compressed": "7z",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/x-hwp": "hwp",
    "application/hwp+zip": "hwpx",
    "application/rtf": "rtf",
    "application/epub+zip": "epub",
    "application/wasm": "wasm",
    "application/vnd.sqlite3": "sqlite sqlite3 db",
    "application/vnd.apache.parquet": "parquet",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg oga",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "video/mp4": "mp4 m4v",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "font/ttf": "ttf",
    "font/otf": "otf",
}
_NAMES: Final = {
    "text/plain": (
        "readme license licence copying notice authors contributors changelog changes news todo version install "
        "codeowners procfile"
    ),
    "text/x-makefile": "makefile gnumakefile",
    "text/x-dockerfile": "dockerfile containerfile",
    "text/x-ruby": "gemfile rakefile vagrantfile",
    "text/x-groovy": "jenkinsfile",
    "text/x-ini": (
        ".gitignore .gitattributes .gitmodules .dockerignore .editorconfig .env.example .env.sample .npmignore "
        ".prettierignore .eslintignore .mailmap"
    ),
    "application/json": ".prettierrc .eslintrc .babelrc",
    "application/yaml": ".clang-format .clang-tidy",
}


def _table(*groups: dict[str, str]) -> dict[str, str]:
    return {key: mime for group in groups for mime, keys in group.items() for key in keys.split()}


_BY_EXTENSION: Final = _table(_TEXT, _IMAGES, _OTHER)
_BY_NAME: Final = _table(_NAMES)
_TEXTUAL: Final = frozenset((*_TEXT, *_NAMES))
_BINARY: Final = frozenset((*_IMAGES, *_OTHER))

# What is served when nobody says which extensions: texts, code, configuration, images, PDF.
SAFE_EXTENSIONS: Final = frozenset(_table(_TEXT, _IMAGES))
SAFE_NAMES: Final = frozenset(_BY_NAME)


def extension(name: str) -> str:
    """In lower case and without the dot; "" for `README` and for `.gitignore`."""
    stem, dot, last = name.rpartition(".")
    return last.casefold() if dot and stem else ""


def mime_type(name: str) -> str:
    """By the name alone, so that a listing, a stat and a read say the same."""
    found = _BY_EXTENSION.get(extension(name))
    return found or _BY_NAME.get(name.casefold()) or UNKNOWN


def known_text(mime: str) -> bool:
    return mime in _TEXTUAL


def known_binary(mime: str) -> bool:
    return mime in _BINARY
