/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/probes
/* Probes that a file names in its notes, and damaged notes: each file is this program, which has
 * notes, with some of their bytes changed. */
#include "test.h"

#include "probes/usdt.h"

#define DAMAGED 150u

unsigned short usdt_here_semaphore __attribute__((used, section(".probes"))) = 1;

__attribute__((used, noinline)) static void here(void)
{
	__asm__ volatile("990:	nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f, 994f-993f, 3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b, 0, usdt_here_semaphore\n"
			 ".asciz \"own\"\n"
			 ".asciz \"here\"\n"
			 ".asciz \"\"\n"
			 "994: .balign 4\n"
			 ".popsection\n");
}

struct file {
	unsigned char *bytes;
	size_t len;
	size_t note; /* offset of the note's head */
	char path[64];
};

static void read_self(struct file *f)
{
	static const char name[] = "stapsdt\0";
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned char *at;

	*f = (struct file){.len = (size_t)size, .bytes = malloc((size_t)size)};
	CHECK(f->bytes && pread(fd, f->bytes, f->len, 0) == size);
	close(fd);
	/* this text itself is in the file, too: the owner of a note has a head before it */
	for (at = f->bytes;
	     (at = memmem(at, f->len - (size_t)(at - f->bytes), name, sizeof(name) - 1)); at++)
		if (at - f->bytes >= 12 && !memcmp(at - 12, "\x08\0\0\0", 4) && at[-4] == 3)
			f->note = (size_t)(at - f->bytes) - 12;
	CHECK(f->note);
}

/* Writes it, and looks for a probe in it. */
static int find(struct file *f, const char *provider, const char *name, struct probe_points *p,
		char **why)
{
	int fd = memfd_create("damaged", MFD_CLOEXEC), r;

	CHECK(fd >= 0 && write(fd, f->bytes, f->len) == (ssize_t)f->len);
	snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", fd);
	*p = (struct probe_points){0};
	r = usdt_find(p, f->path, &(struct usdt_probe){.provider = provider, .name = name}, why);
	close(fd);
	return r;
}

/* 0 or -errno, of the probe as it is named here; a sentence that has this text, if it fails. */
static int finds(struct file *f, const char *text)
{
	struct probe_points p;
	char *why;
	int r = find(f, "own", "here", &p, &why);

	if (r && text)
		CHECK(why && strstr(why, text));
	free(why);
	probe_points_fini(&p);
	return r;
}

TEST(found)
{
	struct probe_points p;
	struct file f;
	char *why;

	read_self(&f);
	CHECK_INT(find(&f, "own", "here", &p, &why), 0);
	CHECK_INT(p.n, 1);
	CHECK_INT(f.bytes[p.at[0].offset], 0x90);
	CHECK_INT(f.bytes[p.at[0].semaphore] | f.bytes[p.at[0].semaphore + 1] << 8, 1);
	CHECK_STR(p.at[0].path, f.path);
	probe_points_fini(&p);
	CHECK_INT(find(&f, NULL, "here", &p, &why), 0);
	CHECK_INT(p.n, 1);
	probe_points_fini(&p);
	CHECK_INT(find(&f, "other", "here", &p, &why), -ENOENT);
	CHECK(why && strstr(why, "own:here"));
	free(why);
	free(f.bytes);
}

/* Changes some bytes of the note, looks, and changes them back. */
static int changed(struct file *f, size_t at, const void *bytes, size_t len, const char *text)
{
	unsigned char before[16];
	int r;

	memcpy(before, f->bytes + f->note + at, len);
	memcpy(f->bytes + f->note + at, bytes, len);
	r = finds(f, text);
	memcpy(f->bytes + f->note + at, before, len);
	return r;
}

TEST(damaged)
{
	const uint32_t most = UINT32_MAX, few = 20, much = 1 << 20;
	const uint64_t nowhere = UINT64_MAX - 4, code = (uintptr_t)0x40;
	struct file f;
	uint64_t pc;

	read_self(&f);
	CHECK_INT(changed(&f, 0, &most, 4, "no probes that can be read"), -ENOENT);
	CHECK_INT(changed(&f, 0, &much, 4, "no probes that can be read"), -ENOENT);
	CHECK_INT(changed(&f, 4, &most, 4, "no probes that can be read"), -ENOENT);
	CHECK_INT(changed(&f, 4, &few, 4, "no probes that can be read"), -ENOENT);
	CHECK_INT(changed(&f, 8, "\4", 1, "no probes that can be read"), -ENOENT);
	CHECK_INT(changed(&f, 20, &nowhere, 8, "not of its code"), -EBADMSG);
	CHECK_INT(changed(&f, 20, &code, 8, "not of its code"), -EBADMSG);
	memcpy(&pc, f.bytes + f.note + 20, 8);
	pc++; /* another instruction */
	CHECK_INT(changed(&f, 20, &pc, 8, "not of its code"), -EBADMSG);
	CHECK_INT(changed(&f, 36, &nowhere, 8, "semaphore"), -EBADMSG);
	CHECK_INT(changed(&f, 36, &pc, 8, "semaphore"), -EBADMSG); /* not in data */
	CHECK_INT(changed(&f, 48, "\n", 1, "no probes that can be read"), -ENOENT);
	CHECK_INT(finds(&f, NULL), 0);
	free(f.bytes);
}

/* Whatever the bytes are, the child answers, and what it finds is in the file. */
TEST(any_bytes)
{
	struct file f;
	unsigned int seed = 1;

	read_self(&f);
	for (uint32_t i = 0; i < DAMAGED; i++) {
		unsigned char before[56], *note = f.bytes + f.note;
		struct probe_points p;
		char *why;
		int r;

		memcpy(before, note, sizeof(before));
		for (uint32_t k = 0; k <= i % 4; k++)
			note[(unsigned int)rand_r(&seed) % sizeof(before)] = (unsigned char)rand_r(
				&seed);
		r = find(&f, NULL, "here", &p, &why);
		CHECK(!r || r == -ENOENT || r == -EBADMSG);
		CHECK(!r == !why);
		for (size_t k = 0; k < p.n; k++)
			CHECK(p.at[k].offset < f.len && p.at[k].semaphore < f.len);
		free(why);
		probe_points_fini(&p);
		memcpy(note, before, sizeof(before));
	}
	free(f.bytes);
}
