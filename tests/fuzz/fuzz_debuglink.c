// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/symbols/debuglink.c core/symbols/debugfile.c core/symbols/source.c core/base/holes.c core/base/pread.c
// sources: core/process/elf_note.c core/base/buf.c core/base/text.c
// flags: -Wl,--wrap=open
// libs: -lelf -lz -lzstd -llzma
// clang-format on
// The links of a file to its debug files, as a file or a worker that was taken over answers them:
// a file is opened only below the root, in the places of debug files, and by the name of the link.
#include "fuzz.h"
#include <elf.h>
#include <limits.h>

#include "process/safe_open.h"
#include "symbols/debugfile.h"
#include "symbols/internal/debuglink.h"
#include "symbols/internal/source.h"

#define SECTIONS 4 /* build ID, link, alternate link, names */

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);

static const char *link_name, *alternate;
static bool active; /* libFuzzer opens files too */

/* Of the sources, only the root is opened so. */
int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	if (active && (strcmp(path, "/nowhere") || !(flags & O_PATH)))
		abort();
	if (active)
		return __real_open("/", flags);
	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	return __real_open(path, flags, mode);
}

static bool ends(const char *path, const char *name)
{
	size_t n = strlen(path), m = strlen(name);

	return m && n > m && path[n - m - 1] == '/' && !strcmp(path + n - m, name);
}

/* In place of safe_open.c: judges the path, and opens nothing. */
int safe_hold(int root, const char *path, uint64_t resolve)
{
	if (root < 0 || strlen(path) >= PATH_MAX)
		abort();
	if (resolve && !strcmp(path, alternate)) /* no link on the way, so any path will do */
		return -ENOENT;
	if (resolve) /* a folder on the way to a dwz file */
		return strncmp(alternate, path, strlen(path)) ? -ELOOP
							      : __real_open("/tmp", O_PATH);
	if (!strncmp(path, "/usr/lib/debug/.build-id/", 25)) {
		if (strspn(path + 25, "0123456789abcdef/.debug") != strlen(path + 25) ||
		    strstr(path, ".."))
			abort();
	} else if (link_name) {
		if (!ends(path, link_name) || strchr(link_name, '/'))
			abort();
	} else if (strcmp(path, alternate) && strncmp(path, "/usr/lib/debug/.dwz/", 20)) {
		abort();
	}
	return -ENOENT;
}

int safe_reopen(int held, struct stat *st)
{
	(void)held;
	(void)st;
	abort();
}

/* An ELF file of these sections, in memory of its own, so that a byte too far is found. */
static void *build(const uint8_t *const *at, const size_t *len, size_t *total)
{
	static const char names[] = "\0.note.gnu.build-id\0.gnu_debuglink\0.gnu_debugaltlink\0.s";
	static const uint32_t name_at[] = {1, 20, 35, 53};
	size_t off = sizeof(Elf64_Ehdr) + (SECTIONS + 1) * sizeof(Elf64_Shdr);
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', 2, 1, 1},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = 1,
			.e_shoff = sizeof(h),
			.e_ehsize = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = SECTIONS + 1,
			.e_shstrndx = SECTIONS};
	Elf64_Shdr s[SECTIONS + 1] = {0};
	char *image;

	*total = off + sizeof(names);
	for (int i = 0; i < SECTIONS - 1; i++)
		*total += (len[i] + 7) & ~(size_t)7;
	image = calloc(1, *total);
	if (!image)
		abort();
	for (int i = 0; i < SECTIONS; i++) {
		bool is_names = i == SECTIONS - 1;
		size_t n = is_names ? sizeof(names) : len[i];

		s[i + 1] = (Elf64_Shdr){.sh_name = name_at[i],
					.sh_type = is_names ? SHT_STRTAB
						   : i      ? SHT_PROGBITS
							    : SHT_NOTE,
					.sh_offset = off,
					.sh_size = n,
					.sh_addralign = 4};
		memcpy(image + off, is_names ? (const void *)names : at[i], n);
		off += (n + 7) & ~(size_t)7;
	}
	memcpy(image, &h, sizeof(h));
	memcpy(image + sizeof(h), s, sizeof(s));
	return image;
}

static void open_links(const struct source *file)
{
	uint8_t id[64];
	size_t n = source_build_id(file, id), alt_n;
	char *name, *link;
	size_t len;

	active = true;
	if (!source_load(file, ".gnu_debuglink", 8192, &link, &len)) {
		link_name = link;
		debugfile_open("/nowhere", "/usr/bin/program", id, (uint32_t)n, link);
		debugfile_open("/nowhere", "program", id, (uint32_t)n, link);
		free(link);
	}
	link_name = NULL;
	if (!debugaltlink_read(file, &name, id, &alt_n)) {
		alternate = name;
		debugfile_open_alt("/nowhere", name, id, (uint32_t)alt_n);
		free(name);
	}
	active = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at[2][SECTIONS - 1];
	size_t len[2][SECTIONS - 1], total[2];
	struct source *s[2] = {NULL, NULL};
	void *image[2];

	for (int i = 0; i < 2 * (SECTIONS - 1); i++) {
		size_t n = size ? data[0] : 0;

		size -= !!size;
		data += !!size || n;
		n = n < size ? n : size;
		at[i / 3][i % 3] = data;
		len[i / 3][i % 3] = n;
		data += n;
		size -= n;
	}
	for (int i = 0; i < 2; i++) {
		image[i] = build(at[i], len[i], &total[i]);
		if (source_open_memory(&s[i], image[i], total[i]))
			s[i] = NULL;
	}
	if (s[0] && s[1]) {
		if (debuglink_matches(s[0], s[1]) > 1 || debugaltlink_matches(s[0], s[1]) > 1)
			abort();
		open_links(s[0]);
		open_links(s[1]);
	}
	for (int i = 0; i < 2; i++) {
		source_close(s[i]);
		free(image[i]);
	}
	return 0;
}
