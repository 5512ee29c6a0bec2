# SPDX-License-Identifier: Apache-2.0
"""Which chains of calls each program can have, root to leaf: the truth for its stacks.

A chain is written as its frames with ';' between. A frame of the program itself is its function's
name, without parameters; one of another file is 'file!name', or 'file!?' where that file has no
name for it (a C library without debug symbols has none for its inner functions); '?' alone is code
of the program that no symbol covers. Kernel frames are left out. A grammar is a regular expression
over the complete chain: one frame more, less, or other is not true.
"""

import re

LIBC = r"libc\.so\.6![^;]+"
LD = r"ld-linux-x86-64\.so\.2![^;]+"
VDSO = r"\[vdso\]![^;]+"
PLT = r"(?:\?|[\w.*+]+@plt)"
SYSTEM = r"(?:%s|%s|%s)" % (LIBC, LD, VDSO)

START = r"_start;libc\.so\.6!(?:__libc_start_main\S*|\?);libc\.so\.6!(?:__libc_start_call_main|\?)"
MAIN = START + ";main"
THREAD = r"libc\.so\.6!(?:__clone3|clone3|__GI___clone3|\?);libc\.so\.6!(?:start_thread|\?)"
RESTORE = r"libc\.so\.6!(?:__restore_rt|\?)"
# asking for the time, also in the kernel's page of code
TIME = r"go_on(?:;%s|;%s)*" % (PLT, SYSTEM)
# before the gate opens: the dynamic linker, constructors, and the gate itself
INITS = r"\?|_init|_fini|frame_dummy|register_tm_clones|deregister_tm_clones|__do_global_dtors_aux"
# libraries' constructors call what they like: libgcc's asks the CPU, which a virtual machine answers slowly
LIBRARY = r"[^;!]+\.so[^;!]*![^;]+"
BEFORE = r"%s(?:;%s)*(?:;%s)*(?:;(?:[^;]+!)?(?:%s))?|%s(?:;%s)?(?:;%s)+" % (LD, LD, LIBRARY, INITS, MAIN, PLT, SYSTEM)
# around main: exit, destructors; __do_global_dtors_aux calls __cxa_finalize
AROUND = r"_start(?:;%s){0,2}(?:;%s)*(?:;(?:%s)(?:(?:;%s)?(?:;%s)+)?)?" % (LIBC, SYSTEM, INITS, PLT, SYSTEM)
OUTSIDE = BEFORE + "|" + AROUND


def chain(*calls):
    """a;b;c, where a sample may be taken in any of them: a(?:;b(?:;c)?)?"""
    out = ""
    for c in reversed(calls):
        out = c + (r"(?:;%s)?" % out if out else "")
    return out


def main_calls(body, root=MAIN):
    return r"%s(?:;(?:%s|%s))?" % (root, TIME, body)


def recursion(name, deepest, *at):
    """name 1 to deepest times, or (depth, burner): exactly that many, then the burner."""
    exact = [r"(?:%s;){%d}%s" % (name, d, b) for d, b in at]
    return "(?:%s)" % "|".join(exact + [r"%s(?:;%s){0,%d}" % (name, name, deepest - 1)])


REC = recursion("rec", 36, (36, "burn_at_36"), (18, "burn_at_18"))
STATIC = r"_start;__libc_start_main\w*;__libc_start_call_main;main"
# musl calls main from a function without unwind information, to which _start_c only jumps
MUSL_LIBC = r"(?:(?:ld-musl-x86_64\.so\.1|libc\.so)!)?"
MUSL_START = r"_start;%s(?:libc_start_main_stage2|\?)" % MUSL_LIBC
# and exit, behind it
MUSL = r"%s;%sexit(?:;%s[^;!]+)*|%s;main" % (MUSL_START, MUSL_LIBC, MUSL_LIBC, MUSL_START)

# interrupted code, and the two handlers; on_signal interrupts anything but a handler, on_trap
# what stands behind int3
DIVE = recursion("dive", 12, (12, "burn_below"))
WORK = r"work(?:;(?:%s|%s|%s))?" % (TIME, DIVE, chain("trap_above", "trap_here"))
SIGNAL = chain(RESTORE, "on_signal", "burn_signal")
TRAP = chain(RESTORE, "on_trap", "burn_trap")
TRAPPED = "work;trap_above;trap_here;" + TRAP


def signals(root):
    return r"%s(?:;(?:%s))?(?:;%s)*(?:;%s)?|%s;%s" % (root, WORK, SYSTEM, SIGNAL, root, TRAPPED)


THREADS = "|".join(
    r"%s;thread_%s(?:;(?:%s|%s))?"
    % (
        THREAD,
        n,
        r"(?:%s|%s)(?:;%s)*" % (TIME, SYSTEM, SYSTEM),
        recursion("work_" + n, d, (d, "burn_" + n)),
    )
    for n, d in (("a", 3), ("b", 5), ("c", 7), ("d", 9))
)

ONE = (
    r"libone\.so!one_enter(?:;libone\.so!one_middle(?:;libone\.so!(?:one_burn|\?|one_burn@plt))?)?"
)
TWO = r"libtwo\.so!two_enter(?:;libtwo\.so!two_middle(?:;libtwo\.so!two_low(?:;libtwo\.so!two_burn)?)?)?"
INIT = (
    r"lib(?:one|two)\.so!(?:\?|_init|_fini|frame_dummy|register_tm_clones|deregister_tm_clones|__do_global_dtors_aux)"
    r"(?:;lib(?:one|two)\.so![^;]+)?"
)
LOADING = r"round_of(?:;load)?(?:;copy)?(?:;%s)?(?:;%s)*(?:;%s(?:;%s)*)?" % (
    PLT,
    SYSTEM,
    INIT,
    SYSTEM,
)

X = r"(?:libstdc\+\+\.so\.6[.\d]*|libgcc_s\.so\.1|libc\.so\.6|ld-linux-x86-64\.so\.2)![^;]+"
THROWS = (
    r"catcher(?:;%s)?(?:;%s)*|catcher;burn_caught|" % (PLT, X)
    + r"catcher(?:;level){1,6}(?:;%s)?(?:;%s)*|catcher(?:;level){1,6};Guard::~Guard|" % (PLT, X)
    + r"catcher(?:;level){6};thrower(?:;%s)?(?:;%s)*" % (PLT, X)
)

# The C++ runtime's unwinder, at its end, writes the landing pad over its own return address, and
# other frames' registers over its saved ones, before it jumps: for some instructions no memory
# says who called it.
REWRITTEN = (
    r"(?:%s;|(?:catcher|level|thrower);|.{0})(?:(?:catcher|level|thrower);)*"
    r"libgcc_s\.so\.1!_Unwind_(?:RaiseException|Resume)(?:;libgcc_s\.so\.1![^;]+)?" % MAIN
)

# the program calls only_aligned from 1, 3, 5 or 7 frames of variable
ALLOCA = (
    "pushes(?:;many(?:(?:;variable){1,7}"
    "|;variable(?:;variable;variable){0,3};only_aligned(?:;aligned(?:;burn_alloca)?)?)?)?"
)

RUST_START = START + r";main(?:;(?:std::|core::|alloc::|<)[^;]+){1,16};rust::main"
RUST_NODE = "<rust::Node<T> as rust::Work>::work"
RUST_STD = r"(?:(?:core|std|alloc)::|<)(?!rust)[^;]+"
RUST = (
    START
    + r";main(?:;%s)*(?:;%s)*|" % (RUST_STD, SYSTEM)
    + RUST_START
    + r"(?:;rust::cpu(?:;%s|;%s)*|;%s)*(?:;rust::apply(?:;rust::main::{{closure}})?(?:;rust::through"
    r"(?:;%s(?:;%s(?:;<rust::Leaf as rust::Work>::work(?:;rust::burn_leaf(?:;%s)*)?(?:;%s)*)?(?:;%s)*)?(?:;%s)*)?"
    r"(?:;%s)*)?(?:;%s)*)?"
    % ((PLT, SYSTEM, RUST_STD, re.escape(RUST_NODE), re.escape(RUST_NODE)) + (RUST_STD,) * 6)
)

GO_RUNTIME = (
    r"(?:;(?:(?:runtime|internal/runtime|runtime/internal|internal|syscall|time|sync)[./][^;]+"
    r"|[a-z]+body|(?<=runtime\.systemstack;)gosave_systemstack_switch))*"  # its assembly without a package: indexbytebody
)
# Go's runtime works on the thread's own stack, signal handlers on one more: the goroutine's stack
# is in no copy then
GO_SIGNAL = r"runtime\.(?:cgoSigtramp|sigreturn(?:__sigaction)?|sigtramp)"
GO_ELSEWHERE = r"(?:runtime\.(?:systemstack|morestack|asmcgocall|gogo)|(?:[^;]+;)?%s)%s(?:;%s)*" % (
    GO_SIGNAL,
    GO_RUNTIME,
    SYSTEM,
)
GO_MAIN = r"runtime\.goexit;runtime\.main;main\.main"
# mcall leaves the goroutine for good: Go's own profiles begin there as well; so do these calls of newstack
GO_ENTRY = (
    r"(?:runtime\.goexit|runtime\.mstart|runtime\.rt0_go|_rt0_amd64_linux|runtime\.mcall"
    r"|runtime\.newstack(?=;runtime\.(?:gopreempt_m|preemptPark)))"
)
# before main.main, packages are initialized: any of the standard library may be at work
GO_INIT = r"runtime\.goexit;runtime\.main;runtime\.doInit1?(?:;[^;]+)*"
# what main.main ends with (os/proc.go): syscall.Exit is the runtime's
GO_EXIT = (
    GO_MAIN
    + r";os\.Exit(?:;internal/testlog\.[^;]+|;os\.runtime_beforeExit|;syscall\.Exit)?"
    + GO_RUNTIME
)
GO_OUTSIDE = GO_ENTRY + GO_RUNTIME + "(?:;%s)*" % SYSTEM + "|" + GO_INIT + "|" + GO_EXIT
GO = "|".join(
    [
        GO_MAIN
        + r"(?:;main\.inMain(?:;%s)?)?" % recursion(r"main\.deep", 8, (8, r"main\.burnLeaf"))
        + GO_RUNTIME,
        GO_MAIN + r"(?:;main\.cpu|;main\.\(\*atomicFlag\)\.set)?" + GO_RUNTIME,
        r"runtime\.goexit;main\.main\.func1"
        + r"(?:;main\.\(\*atomicFlag\)\.get|;%s)?"
        % chain(
            r"main\.inGoroutine", r"main\.callBack", r"main\.inGoroutine\.func1", r"main\.burnLeaf"
        )
        + GO_RUNTIME,
        GO_OUTSIDE,
    ]
)
GOLEAF = "|".join(
    [
        GO_MAIN
        + "(?:;%s)?" % chain(r"main\.above", r"main\.callsLeaf", r"main\.leaf")
        + GO_RUNTIME,
        GO_MAIN + r"(?:;main\.cpu)?" + GO_RUNTIME,
        GO_OUTSIDE,
    ]
)

# name: grammar; "excused": chains, truncated or not, of moments at which no copy of the stack can tell
# the truth, at most verdict.EXCUSED of the ticks; "copy": can a copy of 65,528 bytes hold its stacks (and
# are its files there)?; "kernel": can it walk them (as a rule what a copy holds)?; "names": an unstripped twin of a stripped program
PROGRAMS = {
    "rec36": dict(grammar=main_calls(REC)),
    "rec36-stripped": dict(grammar=main_calls(REC), names="rec36"),
    "frames30k": dict(grammar=main_calls(recursion("big", 36, (36, "burn_deep")))),
    "qsort": dict(
        grammar=main_calls(
            r"sort_all(?:;fill|;%s|(?:;%s){1,12}(?:;%s)?|(?:;%s){2,10};compare(?:;burn_compare)?)?"
            % (PLT, LIBC, LD, LIBC)
        )
    ),
    "plt": dict(
        grammar=main_calls(
            r"calls_above(?:;calls(?:;%s|;libplt\.so!plt_(?:one|two)|(?:;%s)?(?:;%s)+)?)?"
            % (PLT, PLT, LD)
        )
    ),
    "signal": dict(grammar=signals(MAIN)),
    "signal-near": dict(
        grammar=signals(THREAD + ";thread_main") + r"|(?:%s|%s)(?:;%s)*" % (MAIN, THREAD, SYSTEM)
    ),
    "threads": dict(grammar=THREADS + r"|(?:%s|%s)(?:;%s)*" % (MAIN, THREAD, SYSTEM)),
    "dlopen": dict(grammar=main_calls(r"%s|round_of;use(?:;(?:%s|%s))?" % (LOADING, ONE, TWO))),
    "dlopen-deleted": dict(
        grammar=main_calls(r"%s|round_of;use(?:;(?:%s|%s))?" % (LOADING, ONE, TWO))
    ),
    "exceptions": dict(grammar=main_calls(THROWS), excused=REWRITTEN),
    "alloca": dict(grammar=main_calls(ALLOCA)),
    "rust": dict(grammar=RUST),
    "go": dict(grammar=GO, excused=GO_ELSEWHERE),
    "go-old": dict(grammar=GO, excused=GO_ELSEWHERE),
    "goleaf": dict(grammar=GOLEAF, excused=GO_ELSEWHERE),
    "goleaf-old": dict(grammar=GOLEAF, excused=GO_ELSEWHERE),
    "static-pie": dict(
        grammar=r"%s(?:;(?:%s|go_on(?:;.*)?))?|_start(?:;(?!main)[^;]+)*" % (STATIC, REC)
    ),
    # musl's _start has no size, and so no name: its place is looked up
    "musl-static": dict(
        grammar=r"%s(?:;(?:%s|go_on(?:;.*)?))?" % (MUSL, REC), names="musl-static"
    ),
    "musl": dict(grammar=r"%s(?:;(?:%s|go_on(?:;.*)?))?" % (MUSL, REC), names="musl"),
    "hole": dict(
        grammar=main_calls(chain("hole_above", "hole_array", "hole_below", "hole_burn")),
        copy=False,
        kernel=True,
    ),
    "deep200k": dict(
        grammar=main_calls(recursion("wide", 50, (50, "burn_200k"))), copy=False, kernel=True
    ),
    "dlopen-gone": dict(
        grammar=main_calls(r"%s|round_of;use(?:;(?:%s|%s))?" % (LOADING, ONE, TWO)), copy=False
    ),
    "signal-far": dict(grammar=signals(MAIN), copy=False, kernel=True),
}
for _p in PROGRAMS.values():
    _p["match"] = re.compile("(?:%s|%s)" % (_p["grammar"], OUTSIDE)).fullmatch
    _p["excused"] = re.compile(_p.get("excused", r"(?!)")).fullmatch
    _p.setdefault("copy", True)
    _p.setdefault("kernel", _p["copy"])
    _p.setdefault("names", None)
# none at all: the kernel is still at its exec, and there is no user stack yet
before = re.compile("(?:%s)?" % BEFORE).fullmatch

# what a continuous integration run can afford
SHORT = ["rec36", "qsort", "signal", "dlopen", "exceptions", "alloca", "goleaf", "musl", "hole", "deep200k"]
