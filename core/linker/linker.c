/* SPDX-License-Identifier: Apache-2.0 */
#include "linker/linker.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "linker/constant.h"
#include "sandbox/loader.h"

#define ATTEMPTS 3   /* a crash, too, may be a lack of memory */
#define PAUSE_MS 100 /* before the second attempt, twice as long before the third */

/* ---- the child ---- */

static int set_constant(char *object, const struct linker_part *part, size_t len)
{
	size_t at;
	int r = constant_find(object, len, part->constant, &at);

	if (!r)
		memcpy(object + at, &part->value, sizeof(part->value));
	return r;
}

/* Puts the labeler's number into the name of its step, wherever the object has this name: symbols
 * and types have tables of names of their own. */
static int number_step(char *object, size_t len, uint32_t labeler)
{
	static const char name[] = "\0fusee_label_step_0";
	char *at = object, *end = object + len;
	int n = 0;

	while ((at = memmem(at, (size_t)(end - at), name, sizeof(name)))) {
		at += sizeof(name) - 1;
		at[-1] = (char)('0' + labeler);
		n++;
	}
	return n ? 0 : -EINVAL;
}

static int write_part(int fd, const struct linker_part *part)
{
	size_t len = (size_t)((const char *)part->to - (const char *)part->from);
	char *copy = malloc(len);
	int r = 0;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, part->from, len);
	if (part->labeler)
		r = number_step(copy, len, part->labeler);
	if (!r && part->constant)
		r = set_constant(copy, part, len);
	if (!r && write(fd, copy, len) != (ssize_t)len)
		r = -ENOSPC;
	free(copy);
	return r;
}

static int add_part(struct bpf_linker *linker, const struct linker_part *part)
{
	int fd = memfd_create(part->name, MFD_CLOEXEC), r;
	char path[64];

	if (fd < 0)
		return -errno;
	r = write_part(fd, part);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!r)
		r = bpf_linker__add_file(linker, path, NULL);
	close(fd);
	return r;
}

int linker_join(const struct linker_part *parts, uint32_t n, int out)
{
	struct bpf_linker *linker;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
	linker = bpf_linker__new(path, NULL);
	if (!linker)
		return errno ? -errno : -EINVAL;
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_part(linker, &parts[i]);
	if (!r)
		r = bpf_linker__finalize(linker);
	bpf_linker__free(linker);
	return r;
}

struct job {
	const struct linker_part *parts;
	uint32_t n;
	int out;
};

static int join(void *arg, char *why, size_t len)
{
	const struct job *j = arg;

	(void)why;
	(void)len;
	return linker_join(j->parts, j->n, j->out);
}

/* ---- the parent ---- */

static int attempt(struct job *j, char **why)
{
	struct loader child;
	int r = loader_start(&child, "linking them", join, j, &j->out, 1);

	return r ? r : loader_wait(&child, why);
}

static void pause_before(uint32_t nth)
{
	const struct timespec t = {.tv_nsec = PAUSE_MS * 1000000l * nth};

	nanosleep(&t, NULL);
}

int linker_link(const struct linker_part *parts, uint32_t n, int *ret, char **why)
{
	struct job j = {.parts = parts, .n = n, .out = -1};
	int r = -ENOMEM;

	*why = NULL;
	for (uint32_t i = 0; i < ATTEMPTS && (r == -ENOMEM || r == -EFAULT); i++) {
		if (i)
			pause_before(i);
		if (j.out >= 0)
			close(j.out);
		free(*why);
		*why = NULL;
		j.out = memfd_create("sampler", MFD_CLOEXEC);
		r = j.out < 0 ? -errno : attempt(&j, why);
	}
	if (r && j.out >= 0)
		close(j.out);
	else if (!r)
		*ret = j.out;
	if (r && !*why && asprintf(why, "its parts cannot be linked: %s", strerror(-r)) < 0)
		*why = NULL;
	return r;
}
