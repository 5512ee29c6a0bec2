// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/unwinders/jitdump/dump.c plugins/unwinders/jitdump/dumpfile.c plugins/unwinders/jitdump/texts.c plugins/lib/codemap/codemap.c plugins/lib/codemap/names.c
// flags: -Iplugins/unwinders/jitdump
// libs:
// clang-format on
// A jitdump file, whatever a process wrote into it, that grows in pieces: bounded memory, and texts
// that can be read. The first bytes say where it grows, and whether it has a header of its own.
#include "fuzz.h"

#include "dumpfile.h"

#define MAX_MEMORY (512u << 10)
#define PID 42u

static uint32_t generation;

static uint32_t changed(void *arg)
{
	(void)arg;
	return ++generation;
}

static void look(const struct dumpfile *s, uint64_t addr)
{
	struct dump_found f;

	for (uint32_t g = 0; g <= generation; g += 1 + generation / 2) {
		if (!dumpfile_lookup(s, addr, g, &f))
			continue;
		touch(f.name.p, f.name.len);
		touch(f.file.p, f.file.len);
		must(f.line <= INT32_MAX, "a line that files have");
	}
}

static bool touch_name(void *arg, struct fusee_str name)
{
	(void)arg;
	touch(name.p, name.len);
	return true;
}

static void grow(struct dumpfile *s, const uint8_t *data, size_t n, off_t at)
{
	if (pwrite(s->fd, data, n, at) != (ssize_t)n)
		abort();
	s->next_ns = 0;
	dumpfile_read(s, changed, NULL);
	must(dumpfile_bytes(s) <= MAX_MEMORY, "memory is bounded");
}

/* A header that is valid. odd: of V8. */
static size_t put_header(uint8_t *to, bool odd)
{
	const uint32_t words[10] = {0x4a695444, 1, 40, 62, odd ? 0xdeadbeef : 0, PID};

	memcpy(to, words, sizeof(words));
	return sizeof(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t header[40];
	struct dumpfile s;
	size_t part, begin = 0;

	if (size < 3 || dumpfile_init(&s, PID, MAX_MEMORY))
		return 0;
	generation = 1;
	part = data[1] + 256u * (data[0] >> 2);
	if (!(data[0] & 2))
		begin = put_header(header, data[0] & 1);
	data += 2;
	size -= 2;
	s.fd = memfd_create("dump", MFD_CLOEXEC);
	if (s.fd < 0 || pwrite(s.fd, header, begin, 0) != (ssize_t)begin)
		abort();
	part = part < size ? part : size;
	grow(&s, data, part, (off_t)begin);
	grow(&s, data + part, size - part, (off_t)(begin + part));
	for (size_t i = 0; i + 8 <= size && i < 4096; i++) {
		uint64_t addr;

		memcpy(&addr, data + i, sizeof(addr));
		look(&s, addr);
		look(&s, addr + 1);
	}
	dump_covers(s.dump, 0, UINT64_MAX, touch_name, NULL);
	if (ftruncate(s.fd, (off_t)(begin + part / 2)))
		abort();
	grow(&s, data, size / 2, (off_t)begin); /* rewritten */
	look(&s, 0x1000);
	dumpfile_fini(&s);
	return 0;
}
