/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Reads the record that a thread publishes by OTEP 4947. The thread was interrupted, so nothing
 * changes while the record is read; a record that the thread was writing is not valid.
 */
#include <fusee/labeler.bpf.h>
#include <fusee/tls.h>

#include "record.h"

/* Sets *tls to variable i. 0, or -1: there are fewer. */
static int variable(struct fusee_unwind *u, __u32 i, struct fusee_tls *tls)
{
	__u32 w[OTEL_WORDS];

	for (__u32 k = 0; k < OTEL_WORDS; k++)
		if (fusee_process_word(u, i * OTEL_WORDS + k, &w[k]))
			return -1;
	tls->kind = w[OTEL_KIND];
	tls->offset = (int)w[OTEL_OFFSET];
	tls->vaddr = (__u64)w[OTEL_ADDRESS + 1] << 32 | w[OTEL_ADDRESS];
	tls->described = (int)w[OTEL_DESCRIBED];
	return 0;
}

/* Reads the record of variable i. enum fusee_label; or -1: there are fewer. */
static int read_record(struct fusee_unwind *u, __u32 i)
{
	unsigned char record[32]; /* of which OTEL_BYTES are read */
	struct fusee_tls tls;
	__u64 at;

	if (variable(u, i, &tls))
		return -1;
	/* A thread that has not used the file's variables yet has none. */
	if (fusee_tls_address(u, &tls, 0, &at))
		return FUSEE_LABEL_NONE;
	if (fusee_read(u, &at, 8, at))
		return FUSEE_LABEL_UNREADABLE;
	if (!at)
		return FUSEE_LABEL_NONE;
	if (fusee_read(u, record, OTEL_BYTES, at))
		return FUSEE_LABEL_UNREADABLE;
	if (record[OTEL_VALID] != 1)
		return FUSEE_LABEL_INCOMPLETE;
	fusee_label_ids(u, record + OTEL_TRACE_ID, record + OTEL_SPAN_ID);
	return FUSEE_LABEL_GIVEN;
}

FUSEE_PART(fusee_otel_record, read_record)

static int otel_step(struct fusee_unwind *u)
{
	int how = FUSEE_LABEL_NONE;

	(void)u; /* the part finds it in the kernel */
	for (__u32 i = 0; i < OTEL_VARIABLES; i++) {
		int next = FUSEE_CALL(fusee_otel_record, u, i);

		if (next < 0 || next == FUSEE_LABEL_GIVEN)
			return next < 0 ? how : next;
		if (next != FUSEE_LABEL_NONE)
			how = next;
	}
	return how;
}

FUSEE_LABELER_STEP(otel, otel_step);
