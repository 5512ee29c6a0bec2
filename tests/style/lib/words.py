# SPDX-License-Identifier: Apache-2.0
"""Words that C sources do not use: see docs/internals/glossary.md, "Words that are not used"."""
import os
import re

from sources import TOKEN

ALLOWED = "tests/style/lib/allowed.txt"
# word -> what is used instead; in comments, strings and identifiers ("a_told_b")
INSTEAD = {
    "told": "published, reported, counted", "left": "remaining, not unwound", "gone": "ended, removed, closed",
    "cut": "truncated", "asked": "requested", "wants": "requires, selects", "wanted": "required, selected",
    "whole": "complete", "lives": "processes", "news": "change", "elsewhere": "the process or thread itself",
    "somebody": "who it is", "nobody": "who it is not", "not taken": "lost",
}
OLD = re.compile(r"(?<![A-Za-z])(" + "|".join(w.replace(" ", r"\s+") for w in INSTEAD) + r")(?![A-Za-z])", re.I)
# "one" as a noun: with a determiner or an adjective before it and no noun behind, or with a clause
DETERMINER = (r"(?!wherever|whether|never)(?:the|this|that|an?|another|each|every|any|which|its|their|his|own|new|old|other|same|such|"
              r"first|second|last|next|right|wrong|current|previous|\w{3,}er|\w+est)")
NOT_A_NOUN = (r"(?=\s*(?:$|[.,;:)!?]|(?:that|which|who|whose|is|was|are|were|has|had|in|for|to|with|at|by|from|on|"
              r"and|or|but|as|if|when|while|where|does|can|will|may|must|of|be|than|there|here|it|before|after|"
              r"until|so|then|too|only|not|without)\b))")
NOUN = re.compile(r"(?<![\w-])(?:(?:" + DETERMINER + r")\s+one\b" + NOT_A_NOUN +
                  r"|one\s+(?:that|which|who|whose)\b|one's\b|ones(?:')?)(?!\w)", re.I)
IDENTIFIER_ONES = re.compile(r"(?<![A-Za-z])ones(?![A-Za-z])")
LIBBPF = re.compile(r"^(bpf_(?:link|object|map|program)_\w+)")


def instead(word):
    return "say " + INSTEAD.get(word, "the noun itself")


def allowed():
    """(path, word) pairs that are the field's own."""
    pairs = set()
    if os.path.exists(ALLOWED):
        with open(ALLOWED) as f:
            lines = [line.split("#")[0].strip() for line in f]
        pairs = {tuple(line.split(None, 1)) for line in lines if line}
    return pairs


def prose(text):
    """The text with the stars that begin a comment's lines blanked: a phrase may go over lines."""
    return re.sub(r"(?m)^(\s*)\*(?!/)", r"\1 ", text)


def words(f):
    """(line, word as it is banned, what stands there) of each breach in a C source."""
    text = prose(f.text)
    for found in OLD.finditer(text):
        word = re.sub(r"\s+", " ", found.group(1).lower())
        yield f.line_of(found.start()), word, word
    for found in TOKEN.finditer(text):
        for noun in NOUN.finditer(found.group()):
            yield (f.line_of(found.start() + noun.start()), "one",
                   re.sub(r"\s+", " ", noun.group()))
    for found in IDENTIFIER_ONES.finditer(f.code()):
        yield f.line_of(found.start()), "one", found.group()
