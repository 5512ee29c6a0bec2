/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef PERFMAP_REASONS_H
#define PERFMAP_REASONS_H

/* claim_arg: how code of a perf map is stepped */
enum perfmap_code {
	PERFMAP_PYTHON = 1, /* CPython's trampolines */
	PERFMAP_ERLANG = 2, /* BEAM code on an Erlang process's own stack */
};

enum perfmap_reason {
	PERFMAP_REASON_UNREADABLE = 1, /* the stack could not be read */
	PERFMAP_REASON_ERLANG,         /* the first frame of an Erlang process */
};

#define PERFMAP_REASON_TEXTS                                                   \
	{                                                                      \
		"stack not readable", "an Erlang process's own stack ended", 0 \
	}
#endif
