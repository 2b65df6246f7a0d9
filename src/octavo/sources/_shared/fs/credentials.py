"""Names under which tools keep credentials, by who writes them and what is in them.

A name is listed because a program or a habit puts a secret there, not because it sounds like one: `credentials.md` is a
page, `auth.json` a translation as often as a token. So generic names stand here with the folder of their tool. A
pattern is of one name or of names that follow each other, at any depth, in any case of letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# Of these, samples and pages about them are written to be shared: `.env.example`, `kubeconfig-guide.md`.
SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "variables of an environment, loaded by dotenv, direnv and Wrangler": (
        ".env", ".env.*", "*.env", ".envrc", ".dev.vars", ".dev.vars.*",
    ),
    "keys that consoles, libraries and agents save (Google, AWS, Jenkins, Pulumi, Dart, Claude Code)": (
        "credentials.json", "credentials.y*ml", "credentials.toml", "credentials.ini", "credentials.xml",
        "credentials.csv", ".credentials", ".credentials.json", "*accessKeys.csv", "rootkey.csv",
        "pub-credentials.json", "oauth_creds.json", "kaggle.json", "token.pickle",
    ),
    "secrets of an application (Rails, Helm, Streamlit, .NET, Azure Functions, Symfony)": (
        "secrets.y*ml", "secrets.json", "secrets.toml", "secrets.ini", "secrets.properties", "local.settings.json",
        "app/config/parameters.y*ml",
    ),
    "service accounts and OAuth clients of Google": (
        "service-account*.json", "service_account*.json", "serviceAccount*.json", "*-firebase-adminsdk-*.json",
        "google-credentials*.json", "gcloud-service-key*.json", "client_secret*.json",
        "application_default_credentials.json", "gha-creds-*.json",
    ),
    "variables and state of Terraform, which hold passwords in the clear": (
        "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*",
    ),
    "keys to clusters (kubectl, EKS, k3s, RKE2, kubeadm, Talos)": (
        "kubeconfig", "kubeconfig.y*ml", "kubeconfig.json", "kubeconfig.conf", "kubeconfig-*", "kubeconfig_*",
        "*.kubeconfig", "*-kubeconfig", "*-kubeconfig.y*ml", ".kube/config", "k3s.yaml", "rke2.yaml",
        "kubernetes/admin.conf", "talosconfig", ".talos/config",
    ),
    "passwords of the database of a web application (WordPress, Drupal, MediaWiki)": (
        "wp-config.php", "wp-config.php.*", "sites/*/settings.php", "sites/*/settings.local.php", "LocalSettings.php",
    ),
    "passwords of a signing key (Android, Flutter)": ("keystore.properties", "key.properties"),
}  # fmt: skip
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "private keys, key stores and tickets": (
        "*.pem", "*.key", "*.p12", "*.pfx", "*.pkcs12", "*.p8", "*.pvk", "*.jks", "*.jceks", "*.keystore", "*.keytab",
        "*.ppk", "*.gpg", "*.agekey", "*.ccache", "*.kirbi", "krb5cc_*", "id_rsa*", "id_dsa*", "id_ecdsa*",
        "id_ed25519*", ".ssh", ".gnupg",
    ),
    "password managers and their exports": (
        "*.kdbx", "*.kdb", "*.psafe3", "*.1pif", "*.1pux", "*.keychain", "*.keychain-db", ".password-store",
        "bitwarden_export_*", "lastpass_export*", ".config/op",
    ),
    "passwords that browsers keep": ("key3.db", "key4.db", "logins.json", "cookies.sqlite", "Login Data"),
    "networks (OpenVPN, WireGuard, Tailscale, cloudflared, ngrok)": (
        "*.ovpn", "wg[0-9].conf", "tailscaled.state", ".cloudflared", "ngrok.yml",
    ),
    "logins of commands (curl, FTP, mail, S3, rclone, Kerberos)": (
        ".netrc", "_netrc", ".authinfo", ".ftpconfig", "sftp-config.json", ".vscode/sftp.json", ".remote-sync.json",
        "filezilla.xml", "recentservers.xml", "sitemanager.xml", ".msmtprc", ".fetchmailrc", ".s3cfg", ".boto",
        "rclone.conf", ".htpasswd", "etc/shadow", "etc/gshadow",
    ),
    "package registries (npm, PyPI, Cargo, RubyGems, Maven, Gradle, Composer, Poetry, Hex)": (
        ".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".bundle/config",
        ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".composer/auth.json",
        ".config/composer/auth.json", "pypoetry/auth.toml", ".hex/hex.config", ".Renviron",
    ),
    "containers": (".docker/config.json", ".dockercfg", ".dockerconfigjson", "containers/auth.json"),
    "code hosts": (
        ".git-credentials", ".config/git/credentials", ".config/gh/hosts.yml", ".config/hub",
        ".config/glab-cli/config.yml", ".config/github-copilot",
    ),
    "clouds and their commands": (
        ".aws/credentials", ".aws/sso", ".aws/cli/cache", ".azure", ".config/gcloud", ".oci/config",
        ".aliyun/config.json", ".config/doctl/config.yaml", ".config/hcloud/cli.toml", ".config/scw/config.yaml",
        ".fly/config.yml", ".config/netlify/config.json", "com.vercel.cli/auth.json", ".wrangler/config",
        ".supabase/access-token", ".config/stripe/config.toml", ".databrickscfg", ".snowflake/connections.toml",
        ".snowsql/config", ".sentryclirc", ".terraformrc", "terraform.rc", "credentials.tfrc.json", ".vault-token",
        ".vault_pass*", ".vault-pass*",
    ),
    "agents and models": (
        ".claude.json", ".codex/auth.json", "opencode/auth.json", "huggingface/token", "huggingface/stored_tokens",
    ),
    "databases": (".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".idea/dataSources.local.xml"),
    "histories, in which passwords were typed": (
        ".bash_history", ".zsh_history", ".sh_history", "fish_history", ".psql_history", ".mysql_history",
        ".sqlite_history", ".rediscli_history", ".python_history", ".node_repl_history", ".irb_history",
    ),
}  # fmt: skip
_SAMPLED: Final = tuple(pattern for patterns in SETTINGS.values() for pattern in patterns)
CREDENTIALS: Final = (*_SAMPLED, *(pattern for patterns in KEYS.values() for pattern in patterns))
SAMPLED: Final = frozenset(pattern.casefold() for pattern in _SAMPLED)
# A folder of such a name is often one of pages or of source code about them: `kubeconfig/` in a program that writes
# them, `merging-a-kubeconfig/index.md`. Of what is in it, at any depth, only samples, pages and code are served, for a
# folder of keys is called so too: each file by its own name, since a folder `dist` in it may be one of keys as well.
_ABOUT_CODE: Final = ("kubeconfig",)
_CODE: Final = re.compile(r".*\.(go|rs|java|kt|py|ts|js|rb|c|cc|cpp|h|cs|proto)\Z", re.DOTALL)
# The word stands last, or before the last extension: `example.tfvars`, and not `example.com.tfvars`.
_SAMPLE: Final = re.compile(r"(.*[._-])?(example|sample|template|dist)(\.[^.]*)?\Z|.*\.(md|mdx|rst|adoc)\Z", re.DOTALL)


def is_sample(name: str) -> bool:
    """Whether a name, in small letters, that one of SETTINGS fits says that it shows which settings there are, and not
    their values."""
    return _SAMPLE.match(name) is not None or (
        any(one in name for one in _ABOUT_CODE) and _CODE.match(name) is not None
    )


def is_hidden_there(name: str) -> bool:
    """Whether a name, in small letters, is left out of a folder that is called as one of SETTINGS."""
    return _SAMPLE.match(name) is None and _CODE.match(name) is None
