/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef JITDUMP_REASONS_H
#define JITDUMP_REASONS_H

/* claim_arg: how code of a jitdump file is stepped */
enum jitdump_code {
	JITDUMP_PYTHON = 1, /* CPython's trampolines */
	JITDUMP_ERLANG = 2, /* BEAM code on an Erlang process's own stack */
};

enum jitdump_reason {
	JITDUMP_REASON_UNREADABLE = 1, /* the stack could not be read */
	JITDUMP_REASON_ERLANG,         /* the first frame of an Erlang process */
};

#define JITDUMP_REASON_TEXTS                                                   \
	{                                                                      \
		"stack not readable", "an Erlang process's own stack ended", 0 \
	}
#endif
