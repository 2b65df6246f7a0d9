"""What the pages say Octavo does not do: for each such sentence the test that tries it, or why nothing can.

`test_limits.py` says which sentences these are. Each is named by a part of it that stands in no other of its page. A
value that begins with `tests/` is a test of the suite, one in brackets is the reason why there is none.
"""

# ruff: noqa: E501 — a name of a test is one word

from __future__ import annotations

from typing import Final

TRIED: Final = "tests/docs/test_limits.py::"
_PEOPLE: Final = "(about people, not about the server)"
_MACHINE: Final = "(about the machine and what else runs there)"
_ADVICE: Final = "(says when another program will do)"

_INSTALL: Final = "tests/cli/test_install.py::"

LIMITS: Final[dict[str, dict[str, str]]] = {
    "docs/install.md": {
        "names full paths of this machine": _INSTALL + "test_a_file_of_a_project_with_paths_of_this_machine_is_said",
        "between the last look and the replacement": "(two programs that write one file; the system has no lock that clients know)",
        "is written inline or with dotted keys": _INSTALL + "test_a_table_in_another_form_is_left",
        "are not tried": _MACHINE,
    },
    "README.md": {
        "Files are the only thing that can be written": TRIED + "test_files_are_the_only_thing_that_can_be_written",
        "Databases, Notion, Drive": TRIED + "test_there_is_no_source_of_another_system",
        "does not know synonyms": TRIED + "test_skill_match_knows_no_synonyms",
        "no login of its own": TRIED + "test_there_is_no_login_and_nothing_is_asked_of_client_certificates",
        "Limits are kept per process": TRIED + "test_a_reload_begins_to_count_anew",
        "a safety net for known forms": TRIED + "test_a_secret_of_no_known_form_is_not_hidden",
        "Linux comes first": "(says where to read on)",
    },
    "docs/approval.md": {
        "It is a net, not a wall": _PEOPLE,
        "as good as the client": "tests/e2e/test_approval.py::test_where_the_operator_wants_the_queue_the_client_is_not_asked",
        "as the user who owns the state folder": _MACHINE,
        "changes several things under rules of their own": "(for clients of the other era nothing is promised)",
        "Reads are not asked about": TRIED + "test_reads_are_not_asked_about",
    },
    "docs/commands.md": {
        "not single questions": TRIED + "test_a_program_can_ask_whether_a_name_exists",
        "Redaction reads what is printed": TRIED + "test_a_program_that_encodes_brings_a_secret_past_redaction",
        "keeps what it was given": "tests/tools/builtin/test_processes.py::test_all_end_with_the_server",
        "make files with hidden names": TRIED + "test_a_program_that_may_write_may_make_files_with_hidden_names",
        "`undo` cannot take back": TRIED + "test_what_a_program_changes_undo_cannot_take_back",
        "is for each process": "(the kernel's RLIMIT_AS is for each process)",
        "Unix sockets in a readable folder": "(about the kernel)",
        "starts a shell": "(about programs that an operator chooses)",
    },
    "docs/identity.md": {
        "no login and no user directory": TRIED + "test_there_is_no_login_and_nothing_is_asked_of_client_certificates",
        "cannot be revoked one by one": TRIED + "test_only_keys_can_be_revoked",
        "client certificate is no evidence": TRIED
        + "test_there_is_no_login_and_nothing_is_asked_of_client_certificates",
    },
    "docs/operations.md": {
        "run in the process, with all of its rights": "(about Python: nothing in one process can be kept from another part of it)",
        "kept per process": TRIED + "test_a_reload_begins_to_count_anew",
        "who the credential says": "(two programs with one key are one principal by definition)",
        "have no rate limit of their own": "tests/pipeline/test_quota.py::test_the_rate_holds_for_keys_only",
        "no deadline for it": "(whoever started the server can end it)",
        "on Windows nothing is promised": "(about a platform on which no test runs)",
    },
    "docs/platforms.md": {
        "not tested in this release": "(about a platform on which no test runs)",
        "Not supported natively": "(about a platform on which no test runs)",
    },
    "docs/policy.md": {
        "do not look at the content": TRIED + "test_rules_have_no_condition_on_content",
        "not a file permission": _MACHINE,
    },
    "docs/security-model.md": {
        "selection, not authentication": "tests/cli/test_serving.py::test_on_stdio_as_selects_the_agent",
        "Redaction is a net": TRIED + "test_a_secret_of_no_known_form_is_not_hidden",
        "Approval is a net": _PEOPLE,
        "Plugins are not confined": "(about Python: nothing in one process can be kept from another part of it)",
        "can ask whether a name exists": TRIED + "test_a_program_can_ask_whether_a_name_exists",
        "Content is not judged": TRIED + "test_content_is_not_judged",
        "Hard links inside one root": "tests/security/test_specials.py::test_a_hard_link_is_refused_where_others_can_write_and_served_elsewhere",
        "Without Landlock the process has the rights of its user": _MACHINE,
        "compromised issuer": "(whoever signs tokens says who is who by definition)",
        "can write the state folder": _MACHINE,
        "encrypted only with `serve.http.tls`": "tests/transport/test_listening.py::test_with_a_certificate_nothing_is_served_in_the_clear",
        "Denial of service by the network": _MACHINE,
    },
    "docs/skills.md": {
        "at most 512 files and 16 MiB": "tests/app/test_skills.py::test_a_skill_with_too_much_in_it_is_none",
        "in no list of skills": "tests/app/test_skills.py::test_a_skill_with_too_much_in_it_is_none",
        "A page holds the skills among": "tests/app/test_skills.py::test_pages_hold_each_skill_once_and_whole",
        "inside another skill": "tests/sources/catalog/test_skill_folders.py::test_a_skill_may_be_a_folder_and_its_files_are_listed_behind_it",
    },
    "docs/sources/catalog.md": {
        "within the first 64 KiB": "tests/sources/catalog/test_frontmatter.py::test_front_matter_that_does_not_end_is_told",
        "Only the beginning of a file of more than 256 KiB": "(about work that is saved)",
        "at most 8 KiB in a list": "tests/sources/catalog/test_problems.py::test_metadata_that_are_too_long_to_be_listed_are_left_out",
        "first 1,000 entries": "tests/app/test_composed_answers.py::test_what_is_hidden_takes_no_room_in_a_collection",
        "Catalogs are read-only": TRIED + "test_files_are_the_only_thing_that_can_be_written",
    },
    "docs/sources/file.md": {
        "for one file": "tests/pipeline/test_mask.py::test_too_large_says_size_limit_and_the_callers_address",
        "Only regular files": "tests/security/test_specials.py::test_a_fifo_is_absent_and_nobody_waits_for_its_writer",
        "usually hold credentials": "tests/sources/file/test_names.py::test_credentials_and_git_and_our_own_state_are_absent",
        "have no address": "tests/sources/file/test_names.py::test_names_that_no_address_can_say_are_not_listed_and_not_reachable",
        "Unicode form are ambiguous": "tests/sources/file/test_names.py::test_the_exact_form_wins_and_two_others_are_ambiguous",
        "Front matter is part of the text": TRIED + "test_files_have_no_metadata_of_their_front_matter",
    },
    "docs/sources/git.md": {
        "more than 1,000,000 files": "(too large for a test)",
        "A blob up to 64 MiB": "tests/sources/git/test_repositories.py::test_a_blob_over_the_limit_is_refused_before_it_is_read",
        "The way back for a version": "tests/sources/git/test_versions.py::test_the_way_back_is_bounded",
        "Entries have the time of their last commit": "tests/sources/git/test_ages.py::test_the_way_back_is_bounded",
        "A partial clone": "tests/sources/git/test_versions.py::test_a_shallow_clone_knows_as_much_as_it_has",
        "nothing is fetched": "tests/sources/git/test_repositories.py::test_objects_that_are_missing_or_of_another_kind_are_told",
    },
    "docs/sources/memory.md": {
        "at most 1 MiB": TRIED + "test_a_configuration_has_at_most_a_mebibyte",
        "only by editing the configuration": TRIED + "test_files_are_the_only_thing_that_can_be_written",
        "Template addresses are not listed": "tests/sources/test_memory.py::test_a_template_answers_with_its_variable_filled_in_and_is_not_listed",
    },
    "docs/subscriptions.md": {
        "not kept for a client that is not connected": "tests/feed/test_feed.py::test_what_was_missed_can_be_had_again",
        "numbers end with the process": "tests/app/test_durable_feed.py::test_without_a_state_folder_a_number_of_another_process_is_a_gap",
        "looks at everything every two seconds": "(needs a file system without events)",
        "Tell it nothing": "(about what an operator need not do)",
    },
    "docs/why.md": {
        "only programs and hosts that you list": TRIED
        + "test_programs_and_hosts_that_are_not_listed_cannot_be_reached",
        "You need databases, Notion, Drive": TRIED + "test_there_is_no_source_of_another_system",
        "a smaller server will do": _ADVICE,
    },
}
