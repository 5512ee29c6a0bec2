/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <fusee/gotable.h>

static uint32_t load_32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Reads offsets from systemstack, where it returns to the goroutine:
 *	mov %fs:g,%rax, or mov $g,%rcx; mov %fs:(%rcx),%rax
 *	mov m(%rax),%rbx
 *	mov curg(%rbx),%rax
 */
int fusee_go_find_places(const struct fusee_go_table *go, const struct fusee_go_func *f,
			 struct fusee_go_places *p)
{
	for (uint64_t pc = f->lo; pc < f->hi; pc++) {
		const uint8_t *c = fusee_go_code(go, pc, 22);
		unsigned int n = 0;

		if (c && !memcmp(c, "\x64\x48\x8b\x04\x25", 5)) {
			p->g = (int32_t)load_32(c + 5);
			n = 9;
		} else if (c && !memcmp(c, "\x48\xc7\xc1", 3) &&
			   !memcmp(c + 7, "\x64\x48\x8b\x01", 4)) {
			p->g = (int32_t)load_32(c + 3);
			n = 11;
		}
		if (!n || memcmp(c + n, "\x48\x8b\x58", 3) || memcmp(c + n + 4, "\x48\x8b\x83", 3))
			continue;
		p->m = c[n + 3];
		p->curg = load_32(c + n + 7);
		return p->m < 0x80 && p->curg < 0x1000 ? 0 : -EBADMSG;
	}
	return -ENOENT;
}
