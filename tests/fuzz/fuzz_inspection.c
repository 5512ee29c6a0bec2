// SPDX-License-Identifier: Apache-2.0
// sources: core/inspection/block.c core/worker/symbolize_reply.c core/base/buf.c core/base/utf8.c
// libs:
// What a worker that was taken over may answer: a block that is believed leads nowhere outside of
// itself.
#include "fuzz.h"

#include "base/utf8.h"
#include "symbols/symbols.h"
#include "inspection/internal/block.h"
#include "worker/internal/symbolize_reply.h"

static void believe(struct inspection *i)
{
	uint64_t vaddr;

	touch(i->segments, i->nsegments * sizeof(*i->segments));
	for (uint32_t s = 0; s < i->nslabs; s++) {
		touch(i->slabs[s].words, i->slabs[s].n * 4);
		if (inspection_slab(i, i->slabs[s].unwinder) > &i->slabs[s])
			abort();
	}
	if (strchr(i->debuglink, '/') || !utf8_printable(i->debuglink, strlen(i->debuglink)))
		abort();
	touch(i->notes, strlen(i->notes));
	if (!utf8_printable(i->compiler, strlen(i->compiler)))
		abort();
	for (uint32_t s = 0; s < i->nsegments; s++)
		inspection_vaddr(i, i->segments[s].offset, &vaddr);
}

static void block(const uint8_t *data, size_t size)
{
	/* At the end of its pages, so that what follows it is not readable. */
	struct inspection *i;
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		abort();
	memcpy(map, data, size);
	if (inspection_open(&i, map, size, NULL))
		return;
	believe(i);
	inspection_unref(i);
}

static void names(const uint8_t *data, size_t size)
{
	uint64_t *copy = malloc(size); /* so that a byte too far is found */
	struct worker_symbols s;

	memcpy(copy, data, size);
	if (size >= 8 && !symbolize_reply_open(&s, copy, size, ((uint32_t *)copy)[1])) {
		for (uint32_t i = 0; i < s.first[s.n]; i++)
			if (!utf8_printable(s.frames[i].name, strlen(s.frames[i].name)) ||
			    !utf8_printable(s.frames[i].system_name,
					    strlen(s.frames[i].system_name)) ||
			    !utf8_printable(s.frames[i].file, strlen(s.frames[i].file)))
				abort();
		free((void *)s.frames);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > 1 << 20)
		return 0;
	block(data, size);
	names(data, size);
	return 0;
}
