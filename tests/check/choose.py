# SPDX-License-Identifier: Apache-2.0
"""Which tests a run has: a tier's, those that a word names, those that cover what has changed."""
import subprocess


def git(*arguments):
    done = subprocess.run(["git", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise OSError("git %s: %s" % (" ".join(arguments), done.stderr.strip()))
    return done.stdout.splitlines()


def oldest(count):
    """The commit `count` before HEAD, or the first there is."""
    return git("rev-list", "--max-count=%d" % (count + 1), "--first-parent", "HEAD")[-1]


def changed(base):
    """Paths that differ from the commit `base`, those that git does not track yet included; latest commits first."""
    paths = git("ls-files", "--others", "--exclude-standard") + git("diff", "--name-only", "HEAD")
    paths += git("log", "--format=", "--name-only", base + "..HEAD")
    return list(dict.fromkeys(p for p in paths if p))


def covering(tests, paths):
    """Tests that cover one of the paths, those of the first paths first, and paths that none covers."""
    found, bare = {}, []
    for path in paths:
        mine = [t for t in tests if t.covers(path)]
        found.update((t.source, t) for t in mine if t.source not in found)
        if not mine:
            bare.append(path)
    return list(found.values()), bare


def of_tier(tests, tier):
    """full: all that the tier fast has, too."""
    tiers = {"fast": {"fast"}, "full": {"fast", "full"}, "long": {"long"}}[tier]
    return [t for t in tests if tiers & set(t.tiers)]
