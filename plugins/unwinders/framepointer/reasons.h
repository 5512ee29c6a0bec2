/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef FRAMEPOINTER_REASONS_H
#define FRAMEPOINTER_REASONS_H

enum framepointer_reason {
	FRAMEPOINTER_REASON_UNREADABLE = 1, /* the frame's two words could not be read */
	FRAMEPOINTER_REASON_LOST,           /* fp is not known in this frame */
	FRAMEPOINTER_REASON_END, /* fp or the return address is 0: the chain ended, but at no known
				    entry */
	FRAMEPOINTER_REASON_NOT_A_FRAME, /* fp is not aligned, not above sp, or absurdly far */
};

#define FRAMEPOINTER_REASON_TEXTS                                          \
	{                                                                  \
		"frame pointer not readable", "frame pointer not known",   \
			"frame pointer chain ended", "no frame pointer", 0 \
	}
#endif
