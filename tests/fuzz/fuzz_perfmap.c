// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/unwinders/perfmap/map.c plugins/lib/codemap/codemap.c plugins/lib/codemap/names.c
// flags: -Iplugins/unwinders/perfmap
// libs:
// clang-format on
// A perf map, whatever a process wrote into it, fed in pieces and committed now and then: bounded
// memory, and each name that is found is in the file.
#include "fuzz.h"

#include "map.h"

#define MAX_MEMORY (256u << 10)

static void check_part(struct fusee_str part, const char *name, uint64_t len)
{
	static const char anonymous[] = "(anonymous)";
	bool is_literal = part.len == sizeof(anonymous) - 1 &&
			  !memcmp(part.p, anonymous, sizeof(anonymous) - 1);

	if (part.p && part.len && !is_literal && (part.p < name || part.p + part.len > name + len))
		abort();
}

static void look(const struct map *m, uint64_t addr, uint32_t generation)
{
	struct fusee_source_frame f = {.size = sizeof(f)};
	struct fusee_str name;
	enum fusee_code_kind kind;

	map_covers(m, addr, addr + 4096, &kind);
	if (!map_lookup(m, addr, generation, &name))
		return;
	if (!name.len || name.len > MAP_LINE || memchr(name.p, '\n', name.len) ||
	    !map_covers(m, addr, addr + 1, &kind))
		abort();
	fusee_codemap_split(name, &f);
	check_part(f.function, name.p, name.len);
	check_part(f.file, name.p, name.len);
	if (f.system_name.p != name.p || f.system_name.len != name.len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct map *m = map_new(MAX_MEMORY);
	uint32_t generation = 1;
	size_t piece = size ? data[0] + 1u : 1;

	if (!m)
		return 0;
	for (size_t i = 0; i < size; i += piece) {
		size_t n = size - i < piece ? size - i : piece;

		map_feed(m, (const char *)data + i, n);
		if (data[i] & 1) {
			generation += map_replaces(m);
			map_commit(m, generation);
		}
		if (map_bytes(m) > MAX_MEMORY)
			abort();
	}
	map_commit(m, ++generation);
	for (uint64_t addr = 0, step = 1; step; addr += step, step *= 2) {
		look(m, addr, generation);
		look(m, addr, 1);
		if (addr > UINT64_MAX - step * 2)
			break;
	}
	for (size_t i = 0; i + 8 <= size && i < 512; i += 3) {
		uint64_t addr = strtoull((const char[9]){(char)data[i], (char)data[i + 1],
							 (char)data[i + 2], (char)data[i + 3],
							 (char)data[i + 4], (char)data[i + 5],
							 (char)data[i + 6], (char)data[i + 7], 0},
					 NULL, 16);

		look(m, addr, generation / 2);
	}
	map_free(m);
	return 0;
}
