# SPDX-License-Identifier: MIT
"""Completion of bash, zsh and fish: what --help-all says, offered by the shells themselves."""

import json
import os
import shutil
import subprocess

import check_docs
import harness
from harness import PROFILER

COMPLETIONS = os.path.join(harness.HERE, "..", "src", "completions")
BUILD = os.path.dirname(PROFILER)

TRY = """
. "$0"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_profiler profiler "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(*args, directory="/"):
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "HOME": directory}
    done = subprocess.run(
        args, cwd=directory, env=env, capture_output=True, text=True, check=False,
        timeout=harness.RUN_TIMEOUT_S,
    )  # fmt: skip
    return done.stdout


def bash(*words, directory="/"):
    """What bash offers for the last word."""
    path = os.path.join(COMPLETIONS, "profiler.bash")
    shown = run("bash", "--norc", "-c", TRY, path, *words, directory=directory)
    return set(filter(None, shown.split("\n")))


def options_of(*verb):
    """Those of --help-all, as they are offered."""
    rows = check_docs.rows(run(PROFILER, *verb, "--help-all"), check_docs.HELP_ROW)
    return {f"--{name}{'=' if value else ''}" for name, (_, value) in rows.items()}


def verbs():
    return check_docs.VERB_ROW.findall(run(PROFILER, "--help"))


class Completions(harness.TestCase):
    def setUp(self):
        self.here = self.directory()
        for name in ("one.wprof", "two words.folded"):
            with open(os.path.join(self.here, name), "wb"):
                pass

    def test_bash(self):
        self.assertEqual(bash("profiler", "-"), options_of())
        self.assertLessEqual(set(verbs()), bash("profiler", ""))
        for verb in verbs():
            self.assertEqual(bash("profiler", verb, "-"), options_of(verb), verb)
            self.assertEqual(bash("profiler", "-q", verb, "--h"), {"--help", "--help-all"})
            self.assertIn("one.wprof", bash("profiler", verb, "o", directory=self.here))
        self.assertEqual(bash("profiler", "rep"), {"report"})
        for words in (["top"], ["dump"], ["-p"], ["--pid", "="]):
            self.assertIn(str(os.getpid()), bash("profiler", *words, str(os.getpid())))
        # What belongs to a command is its own.
        self.assertIn("true", bash("profiler", "-q", "--", "tru"))
        found = bash("profiler", "ls", "t", directory=self.here)
        self.assertEqual(found, {"two words.folded"})
        self.assertEqual(bash("profiler", "-o", "report", "-"), options_of())

    def test_values(self):
        """Each value that is offered is taken."""
        path = os.path.join(self.here, "empty.wprof")
        for option, args in (("--format", ["report"]), ("--view", ["top"])):
            values = bash("profiler", *args, option, "=", "")
            self.assertGreaterEqual(len(values), 4)
            for value in values:
                self.assertIn(value, run(PROFILER, *args, "--help-all"))
                done = subprocess.run(
                    [PROFILER, *args, f"{option}={value}", path], capture_output=True, text=True,
                    check=False,
                )  # fmt: skip
                self.assertNotIn("unknown", done.stderr)
        self.assertEqual(bash("profiler", "-f", "spee"), {"speedscope"})

    def sit_at(self, shell):
        """Types to a shell in a terminal: what it shows, and what types keys to it."""
        harness.need(shutil.which("tmux"), "no tmux")
        tmux = ["tmux", "-L", f"completions-{os.getpid()}", "-u"]
        command = f"PATH={BUILD}:$PATH PS1='> ' exec {shell}"
        subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d", "-x", "80", command],
                       cwd=self.here, check=True)  # fmt: skip
        self.addCleanup(subprocess.run, [*tmux, "kill-server"], check=False)

        def shown():
            return subprocess.run(
                [*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True
            ).stdout  # fmt: skip

        def type_(*keys):
            subprocess.run([*tmux, "send-keys", *keys], check=True)

        # What is typed before a prompt is there, the terminal itself may take.
        harness.wait_for(lambda: shown().startswith(">"), shell)
        return shown, type_

    def test_typed(self):
        """In a shell that somebody sits at."""
        shown, type_ = self.sit_at("bash --norc --noprofile -i")
        type_(f". {os.path.join(COMPLETIONS, 'profiler.bash')}; clear; PS1='ready> '", "Enter")
        harness.wait_for(lambda: shown().startswith("ready>"), "the completions")
        type_("profiler rep", "Tab", "--no-i", "Tab", "tw", "Tab")
        # A space follows a whole word, and quotes what needs them.
        wanted = r"profiler report --no-inlines two\ words.folded"
        harness.wait_for(lambda: wanted in shown(), wanted)

    def test_fish(self):
        if not shutil.which("fish"):
            return
        path = os.path.join(COMPLETIONS, "profiler.fish")

        def fish(line):
            shown = run("fish", "--no-config", "-c", f"source {path}; complete -C '{line}'",
                        directory=self.here)  # fmt: skip
            return {row.split("\t")[0] for row in shown.splitlines()}

        self.assertLessEqual(set(verbs()), fish("profiler "))
        self.assertEqual(fish("profiler report --no-i"), {"--no-inlines"})
        self.assertEqual(fish("profiler dump -") & options_of("dump"), options_of("dump"))
        self.assertIn("--format=speedscope", fish("profiler --format=s"))
        self.assertIn("one.wprof", fish("profiler view o"))

    def test_zsh(self):
        if not shutil.which("zsh"):
            return
        shown, type_ = self.sit_at("zsh -f -i")
        type_(f"fpath=({COMPLETIONS} $fpath); autoload -U compinit; "
              "compinit -u -D; clear; PS1='ready> '", "Enter")  # fmt: skip
        harness.wait_for(lambda: shown().startswith("ready>"), "the completions")
        type_("profiler rep", "Tab", "--no-i", "Tab", "on", "Tab")
        wanted = "profiler report --no-inlines one.wprof"
        harness.wait_for(lambda: wanted in shown(), wanted)

    def test_installed(self):
        with open(os.path.join(BUILD, "meson-info", "intro-installed.json"), encoding="utf-8") as file:
            places = json.load(file)
        for place in ("bash-completion/completions/profiler", "zsh/site-functions/_profiler",
                      "fish/vendor_completions.d/profiler.fish"):  # fmt: skip
            (source,) = [s for s, to in places.items() if to.endswith(f"/share/{place}")]
            self.assertTrue(os.path.exists(source))


if __name__ == "__main__":
    harness.main()
