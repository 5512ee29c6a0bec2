/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef JITDUMP_REASONS_H
#define JITDUMP_REASONS_H

enum jitdump_reason {
	JITDUMP_REASON_UNREADABLE = 1, /* the stack could not be read */
};

#define JITDUMP_REASON_TEXTS            \
	{                               \
		"stack not readable", 0 \
	}
#endif
