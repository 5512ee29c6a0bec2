/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind
#include "test.h"

#include "unwind/internal/walk_returns.h"

#define PAGE_AT 0x7000u

/* The newest first, as the kernel has them. The second call was ended by a longjmp, and the third
 * and the fourth share a return address. */
static const struct walk_return returns[] = {{1000, 1}, {1016, 2}, {2000, 3}, {2000, 3}, {3000, 4}};
static const uint64_t known = sizeof(returns) / sizeof(*returns);

struct walked {
	struct process_table *processes;
	struct walk_context context;
	struct fusee_native native;
};

static void begin(struct walked *w)
{
	const struct process_mapping page = {.lo = PAGE_AT, .hi = PAGE_AT + 4096, .uprobes = true};
	const struct process_mapping before = {.lo = PAGE_AT - 4096, .hi = PAGE_AT};

	*w = (struct walked){.native = {.arg = &w->context}};
	CHECK_INT(process_table_new(&w->processes, NULL), 0);
	w->context.process = process_get(w->processes, 7);
	CHECK_INT(process_map(w->context.process, &page), 0);
	CHECK_INT(process_map(w->context.process, &before), 0);
	w->context.returns = (struct sample_returns){.at = returns, .n = (uint32_t)known};
}

/* A step has found a caller at the page, whose return address lay at this address. The original; 0:
 * not known. */
static uint64_t original(struct walked *w, uint64_t at)
{
	w->native.u.pc = PAGE_AT;
	w->native.u.sp = at + 8;
	return walk_original_return(&w->native) ? w->native.u.pc : 0;
}

TEST(originals_are_found_by_their_place)
{
	struct walked w;

	begin(&w);
	CHECK_INT(original(&w, 1000), 1);
	CHECK_INT(original(&w, 2000), 3);
	CHECK_INT(original(&w, 3000), 4);
	/* another stack, whose calls are newer */
	CHECK_INT(original(&w, 1016), 2);
	CHECK_INT(original(&w, 1008), 0);
	w.context.returns.n = 0;
	CHECK_INT(original(&w, 1000), 0);
	process_table_free(w.processes);
}

/* Where the thread was interrupted in the page, nothing says what is on its stack. */
TEST(only_the_first_address_is_returned_to)
{
	struct walked w;

	begin(&w);
	w.native.u.flags = FUSEE_PC_EXACT | FUSEE_FIRST;
	CHECK_INT(original(&w, 1000), 0);
	w.native.u = (struct fusee_unwind){.pc = PAGE_AT + 128, .sp = 1008};
	CHECK(!walk_original_return(&w.native));
	process_table_free(w.processes);
}

TEST(an_original_in_the_page_is_none)
{
	static const struct walk_return wrong = {1000, PAGE_AT};
	struct walked w;

	begin(&w);
	w.context.returns = (struct sample_returns){.at = &wrong, .n = 1};
	CHECK_INT(original(&w, 1000), 0);
	process_table_free(w.processes);
}

/* By its mapping, or by the address that the kernel gave where no mapping is known. What is looked
 * up for a caller is the byte before, which is other code. */
TEST(the_page_is_recognized)
{
	struct walked w;
	const struct process_mapping *m;

	begin(&w);
	m = process_mapping(w.context.process, PAGE_AT - 1);
	w.native.u.pc = PAGE_AT;
	CHECK(walk_in_uprobe_page(&w.native, m));
	CHECK(walk_in_uprobe_page(&w.native, NULL));
	w.native.u.pc = PAGE_AT - 4096;
	CHECK(!walk_in_uprobe_page(&w.native, m));
	w.native.u.pc = PAGE_AT + 4096;
	CHECK(!walk_in_uprobe_page(&w.native, NULL));
	w.context.returns.page = PAGE_AT + 4096;
	CHECK(walk_in_uprobe_page(&w.native, NULL));
	process_table_free(w.processes);
}
