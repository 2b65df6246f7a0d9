"""Which names are served: extensions, what is always hidden, and Unicode forms."""

import os
import unicodedata
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound
from octavo.core.ref import Ref
from octavo.sources._shared.fs.names import Rules
from octavo.sources.file import CREDENTIALS, FileSource

pytestmark = pytest.mark.anyio
NFC = "안녕.md"
NFD = unicodedata.normalize("NFD", NFC)
MIXED = unicodedata.normalize("NFC", "안") + unicodedata.normalize("NFD", "녕.md")


async def reason(source: FileSource, uri: str) -> str:
    try:
        await source.read(Ref.parse(uri), max_bytes=100)
    except (NotFound, Forbidden) as error:
        return error.reason
    return "served"


SHAPES = ("a", "*", "**", "*.b", "a*", "a*b", "ab*ba", "aa*a", "*a*", "a*b*", "*a*b", "?", "a?", "[ab]b", "[!a]*", "[")


@pytest.mark.parametrize("pattern", [*SHAPES, "a[", "*[", ""])
async def test_a_hidden_pattern_means_what_a_shell_means_by_it(pattern: str) -> None:
    names = ["".join(letters) for long in range(1, 5) for letters in product("ab.[*\n", repeat=long)]
    rules = Rules(["*"], [pattern])
    assert [n for n in names if rules.hides((n,))] == [n for n in names if fnmatchcase(n, pattern)]


async def test_every_pattern_of_credentials_hides_what_a_shell_would_match_and_no_more() -> None:
    for pattern in (one.casefold() for one in CREDENTIALS if "/" not in one):
        rules, plain = Rules(["*"], [pattern]), pattern.replace("[0-9]", "7")
        for between in ("", "x", "a.b", "example"):
            name = plain.replace("*", between)
            assert rules.verdict((name,)) == "hidden" or "example" in name, (pattern, name)
            for other in (f"x{name}", f"{name}x", name[1:], name[:-1], name.replace(".", "-")):
                if not fnmatchcase(other, pattern):
                    assert rules.verdict((other,)) == "served", (pattern, other)


@pytest.mark.seed("F2")
@pytest.mark.parametrize("extensions", [[".md", ".JSON"], ["md", "json"], [".Md", "Json"]])
async def test_extensions_are_given_with_or_without_a_dot_and_in_any_case(
    write: Any, opened: Any, listing: Any, extensions: list[str]
) -> None:
    for path in ("a.md", "b.MD", "c.json", "d.txt", "e", "f.md.exe", ".bashrc"):
        write(path)
    source = await opened(extensions=extensions)
    assert await listing(source) == ["file://a.md", "file://b.MD", "file://c.json"]


@pytest.mark.seed("F2")
async def test_a_star_allows_every_extension_and_none_given_a_safe_set(write: Any, opened: Any, listing: Any) -> None:
    names = ["Makefile", "README", "a.exe", "b.md", "c.png", "d.tar.gz", "e.py", "noname", "x.pdf"]
    for name in names:
        write(name)
    assert await listing(await opened(extensions=["*"])) == [f"file://{name}" for name in names]
    safe = ["Makefile", "README", "b.md", "c.png", "e.py", "x.pdf"]
    assert await listing(await opened()) == [f"file://{name}" for name in safe]
    assert await listing(await opened(extensions=["tar.gz", "noname"])) == ["file://d.tar.gz", "file://noname"]


@pytest.mark.seed("F2", "F8")
async def test_a_wrong_extension_is_forbidden_whether_the_file_exists_or_not(write: Any, opened: Any) -> None:
    """Seed 000. Decided on the name, so that the answer tells nothing."""
    write("there.exe")
    source = await opened(extensions=["md"])
    for uri in ("file://there.exe", "file://missing.exe"):
        with pytest.raises(Forbidden) as caught:
            await source.stat(Ref.parse(uri))
        assert caught.value.message == "The extension .exe is not served here; served are .md"


@pytest.mark.seed("F2", "F3")
async def test_a_link_cannot_give_a_file_another_extension_or_show_what_is_hidden(
    root: Path, write: Any, opened: Any, listing: Any
) -> None:
    """The sample of seed 000 looks at the link's extension, not at the target's."""
    write("program.exe"), write(".env", "SECRET=1"), write(".git/config"), write("ok.md")
    (root / "a.md").symlink_to("program.exe")
    (root / "b.md").symlink_to(".env")
    (root / "c.md").symlink_to(".git/config")
    (root / "d").symlink_to(".git")
    (root / "e.md").symlink_to("ok.md")
    source = await opened(extensions=["md"])
    assert await listing(source) == ["file://e.md", "file://ok.md"]
    for uri in ("file://a.md", "file://b.md", "file://c.md", "file://d/config.md"):
        assert await reason(source, uri) == "not_found"


@pytest.mark.seed("F3")
async def test_credentials_and_git_and_our_own_state_are_absent(write: Any, opened: Any, listing: Any) -> None:
    hidden = [
        ".env", ".env.local", ".ENV", "prod.env", "tls/server.pem", "tls/server.KEY", "id_rsa", "id_ed25519.bak",
        "x.p12", "x.pfx", ".netrc", ".npmrc", ".pypirc", ".aws/credentials", "home/.aws/credentials", ".ssh/config",
        ".envrc", "krb5.keytab", ".bash_history", "client_secret_1.json", "serviceaccountkey.json",
        ".composer/auth.json",
        "credentials.json", "conf/Credentials.yml", "secrets.yaml", "secrets.toml", "prod.tfvars", "x.auto.tfvars.json",
        "service-account-prod.json", "service_account.json", "my-app-firebase-adminsdk-x1.json", "kubeconfig",
        "kubeconfig-prod", "kubeconfig_prod.yaml", "k3s.yaml", "wp-config.php", "wp-config.php.bak", "a_accessKeys.csv",
        ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", "example.com.tfvars", "sample.pem",
        "sites/default/settings.php", "local.settings.json", ".config/github-copilot/apps.json", "bin/.pgpass",
        "keys/kubeconfig", "lib/kubeconfig/prod.yaml", "lib/kubeconfig/admin.conf", "lib/kubeconfig/prod",
        "lib/kubeconfig/deep/config", "lib/kubeconfig/kubeconfig",
        "merging-a-kubeconfig/admin", "stage.env/db.yaml", ".kube/config", "vault.kdbx",
        ".docker/config.json", ".git/config", "sub/.git/HEAD", ".octavo/state.db",
    ]  # fmt: skip
    shown = [
        ".aws/config", ".env.example", ".env.sample", ".github/x.yml", "auth.json", "credentials", "credentials.md",
        "docker/config.json", "example.tfvars", "kubeconfig-example/a.md", "kubeconfig-guide.md",
        "kubeconfig_test.go", "lib/kubeconfig/README.md",
        "lib/kubeconfig/kubeconfig.go", "locales/en/auth.json", "merging-a-kubeconfig/index.md", "my-secrets.yaml",
        "of/credentials/page.md", "secrets.example.yml", "secrets.md", "secrets.py", "service-account.sample.json",
        "settings.php", "stage.env/README.md", "terraform.tfvars.example", "token.json", "wp-config-sample.php",
    ]  # fmt: skip
    for path in hidden + shown:
        write(path)
    source = await opened(extensions=["*"])
    assert await listing(source) == [f"file://{path}" for path in shown]
    for path in (*hidden, ".git", ".git/no/such/thing", ".env.missing"):
        assert await reason(source, f"file://{path}") == "not_found"
        assert await listing(source, f"file://{path}") == []
        assert set(await source.complete("path", path, {})) <= {f for f in shown if f.startswith(path)}
        assert source.stamp(Ref.parse(f"file://{path}"), "read") is None


async def test_no_name_of_a_folder_opens_what_stands_among_settings(write: Any, opened: Any, listing: Any) -> None:
    """Each file is told by its own name: `dist` in a folder of keys is one of keys."""
    hidden = [
        ".env.example/prod", ".env/sample/prod", ".env/sample/deep/prod.yaml", "credentials.json/EXAMPLE/x.json",
        "credentials.json/a.example.d/x.json", "credentials.json/a.py/y.json", "credentials.json/x.MD/y.json",
        "kubeconfig-example/prod.yaml", "kubeconfig_a.go/prod.yaml", "kubeconfig/dist/kubeconfig",
        "kubeconfig/dist/prod.yaml", "kubeconfig/example/credentials.json", "kubeconfig/templates.template/real.yaml",
    ]  # fmt: skip
    shown = [".env/sample/a.py", "kubeconfig/dist/index.md", "kubeconfig/dist/prod.example.yaml", "kubeconfig/index.md"]
    for path in hidden + shown:
        write(path)
    source = await opened(extensions=["*"])
    assert await listing(source) == [f"file://{path}" for path in shown]
    for path in hidden:
        assert await reason(source, f"file://{path}") == "not_found"
    more = await opened(extensions=["*"], hidden=[*CREDENTIALS, "kubeconfig-*"])
    assert await reason(more, "file://kubeconfig-example/a.md") == "not_found"


async def test_the_operator_can_hide_more_or_show_credentials_but_never_git_or_our_state(
    write: Any, opened: Any, listing: Any
) -> None:
    for path in (".env", ".git/config", ".octavo/key", "private/a.md", "b.md", "drafts/x/c.md"):
        write(path)
    everything = await opened(extensions=["*"], hidden=())
    assert await listing(everything) == ["file://.env", "file://b.md", "file://drafts/x/c.md", "file://private/a.md"]
    write("kubeconfig/a.go")
    more = await opened(extensions=["*"], hidden=[*CREDENTIALS, "priv*", "drafts/x", "kubeconfig"])
    assert await listing(more) == ["file://b.md"]


async def test_an_excluded_directory_is_neither_served_nor_found_under_another_name(
    root: Path, write: Any, opened: Any, listing: Any
) -> None:
    """The state directory may stand anywhere; it is known by what it is, not by its name."""
    write("state/audit.md", "secret"), write("state/deep/x.md", "secret"), write("a.md")
    (root / "link").symlink_to("state")
    (root / "b.md").symlink_to("state/audit.md")
    source = await opened(exclude_dirs=[root / "state"])
    for _ in range(2):
        assert await listing(source) == ["file://a.md"]
        for uri in ("file://state/audit.md", "file://state/deep/x.md", "file://link/audit.md", "file://b.md"):
            assert await reason(source, uri) == "not_found"
        if not (root / "renamed").exists():
            (root / "state").rename(root / "renamed")
            (root / "state").symlink_to("renamed")  # the operator's path still leads there
    assert await reason(source, "file://renamed/audit.md") == "not_found"
    assert await listing(await opened(exclude_dirs=[root])) == []


@pytest.mark.seed("F1")
async def test_an_address_is_nfc_whatever_form_the_disk_has(root: Path, write: Any, opened: Any, listing: Any) -> None:
    """ext4 keeps the form a name was written in; macOS writes NFD. A rule on the NFC name must hold for it."""
    write(f"{unicodedata.normalize('NFD', '폴더')}/{NFD}", "decomposed")
    source = await opened()
    assert await listing(source) == [f"file://폴더/{NFC}"]
    assert await listing(source, "file://폴더") == [f"file://폴더/{NFC}"]
    for name in (NFC, NFD):
        content = await source.read(Ref.parse(f"file://폴더/{name}"), max_bytes=100)
        assert (content.body, str(content.entry.ref), content.entry.target) == (
            "decomposed",
            f"file://폴더/{NFC}",
            None,
        )
        assert content.entry == await source.stat(Ref.parse(f"file://폴더/{name}"))


@pytest.mark.seed("F1")
async def test_the_exact_form_wins_and_two_others_are_ambiguous(
    root: Path, write: Any, opened: Any, listing: Any
) -> None:
    write(NFD, "decomposed"), write(MIXED, "mixed")
    source = await opened()
    assert await listing(source) == []
    with pytest.raises(Conflict, match="Ambiguous"):
        await source.read(Ref.parse(f"file://{NFC}"), max_bytes=100)
    write(NFC, "composed")
    assert await listing(source) == [f"file://{NFC}"]
    assert (await source.read(Ref.parse(f"file://{NFC}"), max_bytes=100)).body == "composed"


async def test_how_many_names_have_no_address_is_said_once(
    root: Path, write: Any, opened: Any, listing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("plain.md", NFC, NFD, "deep/a\\b.md", "deep/new\nline.md", "not\\allowed.exe"):
        write(name)
    source = await opened()
    for _ in range(2):
        await source.armed()
    assert await listing(source) == ["file://deep", "file://plain.md", f"file://{NFC}"][1:]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1 and told[0].startswith("Not served for their names: 3. ")


async def test_names_that_no_address_can_say_are_not_listed_and_not_reachable(
    root: Path, write: Any, opened: Any, listing: Any
) -> None:
    write("plain.md")
    for name in (b"a\\b.md", b"a\nb.md", b"\xff\xfe.md", "x\u202eb.md".encode(), "\u212a.md".encode(), b"\x7f.md"):
        os.close(os.open(os.path.join(os.fsencode(root), name), os.O_CREAT | os.O_WRONLY))
    (root / "link.md").symlink_to("x\u202eb.md")
    source = await opened()
    assert await listing(source) == ["file://plain.md"]
    for uri in ("file://link.md", "file://K.md"):
        assert await reason(source, uri) == "not_found"
    for uri in ("file://a\\b.md", "file://x%E2%80%AEb.md", "file://%FF%FE.md"):
        with pytest.raises(InvalidParams):
            Ref.parse(uri)
