# SPDX-License-Identifier: Apache-2.0
"""Chains of calls of lib/chains.rb, each as a regular expression of letters, and a judge of folded stacks."""
import collections
import re
import subprocess

LETTERS = {"<main>": "M", "Object#run": "R", "block in Object#run": "B", "block (2 levels) in Object#run": "C",
           "Kernel#loop": "L", "Object#burn": "!", "Object#hot": "H", "Enumerable#sort_by": "S", "Array#each": "e",
           "block in Object#hot": "h", "Object#middle": "m", "block in Object#middle": "k", "Object#inner": "i",
           "Object#deep": "d", "Integer#zero?": "z", "Object#through_c": "t", "block in Object#through_c": "u",
           "Object#rescues": "r", "Object#fails": "f", "block in Object#rescues": "b", "rescue in Object#rescues": "s",
           "ensure in Object#rescues": "n", "Kernel#raise": "a", "rb_yield": "y", "Object#dynamic": "D",
           "block in <class:Dynamic>": "g", "Dynamic#method_missing": "g", "Object#first_thread": "1",
           "Object#second_thread": "2", "block in Object#second_thread": "w", "Object#fiber": "F", "Integer#times": "T",
           "block in Object#fiber": "v", "block (2 levels) in Object#fiber": "V", "Fiber#resume": "x", "Fiber.yield": "x",
           "Class#new": "N", "Fiber#initialize": "N", "Exception.exception": "N", "Exception#initialize": "N",
           "Exception#exception": "N", "BasicObject#initialize": "N", "Object#initialize": "N",
           "Exception#backtrace": "N", "Thread#join": "J", "Exception.===": "N", "Module#===": "N",
           "Object#owners": "O", "Outer::Deep#instance": "p", "Outer::Deep.single": "q",
           "block in Outer::Deep.single": "Q", "Outer::Deep.second": "U", "Outer.shared": "X", "Outer#shared": "W",
           "Includes#calls": "Y", "nameless": "Z", "own": "Z"}
# methods in C that are not called through the VM's frames may be missing at the leaf: [zeN]? and the like
CHAINS = {
    "hot": r"MRL(y*B(H(Se?(y+(h(m(Se?(y+(ki?)?)?)?)?)?)?)?)?)?",
    "deep": r"MRL(y*B(d+[!z]?)?)?",
    "through_c": r"MRL(y*B(t(eyut)*(e(yu?)?|[!z])?)?)?",
    "exceptions": r"MRL(y*B(r(e(y(b(f([!aN]+)?)?)?)?|s!?|n!?|!|N)*)?)?",
    "dynamic": r"MRL(y*B(D(N+|g!?)?)?)?",
    "threads": r"B(L(y*C(1!?|2(e(y(w!?)?)?)?)?)?)?",
    "owners": r"MRL(y*B(O(N+|(p|q(ey*Q?)?|U|X|YW?|Z)!?)?)?)?",
    "ractors": r"B(L(y*C(1!?|2(e(y(w!?)?)?)?)?)?)?",
    "fibers": r"MRL(y*B(F(N+|T(y*(vx?)?)?)?)?)?|v(L(y*V(!|x)?)?)?",
}
CHAINS["deep1500"] = CHAINS["deep"]
SINCE = {"ractors": (3, 0)}  # the first version that has what the test is about


def letters(frames):
    return "".join(LETTERS.get(f, "") for f in frames)


def judge(folded, pattern):
    """(samples by weight: right, wrong, without Ruby or lost), and what was wrong."""
    sums = collections.Counter()
    wrong = collections.Counter()
    with open(folded, encoding="utf-8") as f:
        for line in f:
            stack, weight = line.rsplit(" ", 1)
            frames = stack.split(";")
            chain = letters(frames)
            if "[truncated" in stack or "[lost" in stack:
                kind = "lost"
            elif not chain.strip("y"):
                kind = "without"
            else:
                kind = "right" if re.fullmatch(pattern, chain) else "wrong"
            sums[kind] += int(weight)
            if kind != "right":
                why = frames[0] + " " if frames[0].startswith("[") else ""
                wrong[kind + " " + why + chain + " ... " + ";".join(frames[-3:])] += int(weight)
    return sums, wrong


def has_yjit(path):
    p = subprocess.run([path, "-W0", "--disable=gems", "--yjit", "-e", "print RubyVM::YJIT.enabled?"],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return p.stdout == b"true"
