/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The words by which the step finds the labels of a thread's goroutine: a table of the program, and
 * words of each of its processes. */
#ifndef GO_WORDS_H
#define GO_WORDS_H

enum go_words {
	GO_G,      /* of the address of g: from the thread pointer */
	GO_M,      /* of m in g */
	GO_CURG,   /* of curg in m */
	GO_LABELS, /* of labels in g */
	GO_FORM,   /* enum go_form */
	GO_WORDS
};

/* What the word `labels` points to. */
enum go_form {
	GO_SLICE = 1, /* from Go 1.24 on: a slice of {key, value} */
	GO_MAP,       /* before: the address of a map's header */
};

#define GO_MOST_OFFSET 0x1000u /* of a member of a struct of the runtime */
#endif
