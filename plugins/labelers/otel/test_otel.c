// SPDX-License-Identifier: Apache-2.0
// check: fast, covers plugins/labelers/otel
/* The step over made-up memory: which records it takes, and what a target forges. */
#include "test.h"

#include <fusee/labeler.bpf.h>
#include <fusee/tls.h>

#include "record.h"

int fusee_step_otel(struct fusee_unwind *u);

#define THREAD 0x7f0000001000ull /* the thread pointer */
#define RECORD 0x7f0000002000ull

struct world {
	uint64_t variable; /* 16 bytes below the thread pointer */
	unsigned char record[OTEL_BYTES];
	uint32_t words[OTEL_WORDS];
};

static int read_world(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	const struct world *w = n->arg;

	if (addr == THREAD - 16 && len == 8)
		memcpy(dst, &w->variable, 8);
	else if (addr == RECORD && len <= sizeof(w->record))
		memcpy(dst, w->record, len);
	else
		return -1;
	return 0;
}

static struct world right(void)
{
	struct world w = {.variable = RECORD, .words = {FUSEE_TLS_EXECUTABLE, (uint32_t)-16}};

	for (uint32_t i = 0; i < 24; i++)
		w.record[i] = (unsigned char)(i + 1);
	w.record[OTEL_VALID] = 1;
	return w;
}

/* What the step says; its ids are in u->pushed. */
static int step(struct world *w, struct fusee_native *n, __u64 tls, uint32_t nwords)
{
	*n = (struct fusee_native){.u = {.tls = tls, .words = nwords},
				   .words = w->words,
				   .read = read_world,
				   .arg = w};
	return fusee_step_otel(&n->u);
}

TEST(record)
{
	struct world w = right();
	struct fusee_native n;

	CHECK_INT(step(&w, &n, THREAD, OTEL_WORDS), FUSEE_LABEL_GIVEN);
	CHECK(n.u.pushed[0] == 0x0102030405060708 && n.u.pushed[1] == 0x090a0b0c0d0e0f10 &&
	      n.u.pushed[2] == 0x1112131415161718);
}

TEST(no_record)
{
	struct world w = right();
	struct fusee_native n;

	CHECK_INT(step(&w, &n, 0, OTEL_WORDS), FUSEE_LABEL_NONE);
	CHECK_INT(step(&w, &n, THREAD, 0), FUSEE_LABEL_NONE);
	CHECK_INT(step(&w, &n, THREAD, OTEL_WORDS - 1), FUSEE_LABEL_NONE);
	CHECK_INT(step(&w, &n, THREAD + 64, OTEL_WORDS), FUSEE_LABEL_UNREADABLE);
	w.variable = 0;
	CHECK_INT(step(&w, &n, THREAD, OTEL_WORDS), FUSEE_LABEL_NONE);
}

TEST(wrong_record)
{
	struct world w = right();
	struct fusee_native n;

	w.record[OTEL_VALID] = 0;
	CHECK_INT(step(&w, &n, THREAD, OTEL_WORDS), FUSEE_LABEL_INCOMPLETE);
	w.record[OTEL_VALID] = 2;
	CHECK_INT(step(&w, &n, THREAD, OTEL_WORDS), FUSEE_LABEL_INCOMPLETE);
	w.variable = RECORD + 1;
	CHECK_INT(step(&w, &n, THREAD, OTEL_WORDS), FUSEE_LABEL_UNREADABLE);
	CHECK(!n.u.pushed[0] && !n.u.pushed[1] && !n.u.pushed[2]);
}
