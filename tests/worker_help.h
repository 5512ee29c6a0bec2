/* SPDX-License-Identifier: Apache-2.0 */
/* For tests with a real worker. Included by a test program, which then is its own worker process
 * too. */
#ifndef WORKER_HELP_H
#define WORKER_HELP_H

#include <elf.h>
#include <poll.h>

#include "data/worker_plugin.h"
#include "test.h"
#include "opener/opener.h"
#include "base/background.h"
#include "worker/internal/client.h"

/* The worker and the opener are /proc/self/exe: this program. */
__attribute__((constructor)) static void become_worker(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "worker"))
		_exit(worker_run(atoi(argv[2]), strtoull(argv[3], NULL, 10), argv + 4) != 0);
	if (argc == 3 && !strcmp(argv[1], "opener"))
		_exit(opener_run(atoi(argv[2])) != 0);
}

/* Builds the nasty unwinder into the test's folder; its folder. */
__attribute__((unused)) static const char *nasty_plugins(void)
{
	static char dir[80];
	char command[512];

	snprintf(dir, sizeof(dir), "%s/plugins", test_dir());
	CHECK(!mkdir(dir, 0755));
	snprintf(command, sizeof(command),
		 "${CC:-cc} -std=gnu17 -D_GNU_SOURCE -O1 -fPIC -shared -Iinclude -o %s/nasty.so "
		 "tests/data/worker_plugin.c",
		 dir);
	if (system(command))
		SKIP("the test's plugin can't be built here (run from the source's root, with a C "
		     "compiler)");
	return dir;
}

static void write_elf(int fd, uint64_t entry)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_entry = entry};

	CHECK(fd >= 0 && write(fd, &h, sizeof(h)) == sizeof(h));
}

/* A file that is an ELF header and nothing else. It is on no file system that the agent knows. */
__attribute__((unused)) static int elf_with_entry(uint64_t entry)
{
	int fd = memfd_create("entry", MFD_CLOEXEC);

	write_elf(fd, entry);
	return fd;
}

/* The same, in the test's folder. */
__attribute__((unused)) static int elf_on_disk(uint64_t entry, const char *name)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	write_elf(fd, entry);
	return fd;
}

/* Copies what the newest refusal says. */
static void newest_refusal(void *arg, const char *name, const char *text, bool partly)
{
	char *to = arg;

	if (!*to)
		snprintf(to, 512, "%s", text);
}

__attribute__((unused)) static const char *refusal(const struct worker *w)
{
	static char text[512];

	*text = 0;
	worker_refused(w, newest_refusal, text);
	return text;
}

struct inspected {
	int calls, err;
	char text[512];
	struct inspection *i;
};

__attribute__((unused)) static void answered(void *arg, int err, const char *text,
					     struct inspection *i)
{
	struct inspected *a = arg;

	a->calls++;
	a->err = err;
	a->i = i;
	snprintf(a->text, sizeof(a->text), "%s", text);
}

__attribute__((unused)) static struct inspected inspect_fd(struct worker *w, int fd)
{
	struct inspected a = {0};

	CHECK(fd >= 0);
	CHECK_INT(worker_inspect(w, fd, "a file", NULL, answered, &a), 0);
	CHECK_INT(worker_wait_until(w, 0), 0);
	CHECK_INT(a.calls, 1);
	close(fd);
	WAIT_FOR(!background_waiting(worker_background(w))); /* it is written to the cache */
	return a;
}

/* Where only the answer counts. */
__attribute__((unused)) static int inspect_err(struct worker *w, int fd)
{
	struct inspected a = inspect_fd(w, fd);

	inspection_unref(a.i);
	return a.err;
}
#endif
