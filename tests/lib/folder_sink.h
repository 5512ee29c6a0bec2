/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of sinks that keep files in a folder share: their instances, deliveries, and disks
 * that fail. Include it once in a test program. */
#ifndef FOLDER_SINK_H
#define FOLDER_SINK_H

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/begun.h"

#include "lib/scratch.h"

#define NS 1000000000ull
#define MINUTE (60 * NS)
#ifndef LABELS /* of each profile */
#define LABELS "process", "web"
#endif

extern const struct fusee_plugin fusee_plugin;

static int fsync_error; /* of the next calls */

/* No test needs what a disk has when the machine ends. */
int fsync(int fd)
{
	errno = fsync_error;
	return fsync_error ? -1 : 0;
}

/* Four of them live at a time. */
FAKE const char *in_dir(const char *name)
{
	static char paths[4][512];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", dir, name);
	return paths[turn];
}

FAKE void put(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

FAKE bool exists(const char *name)
{
	struct stat st;

	return !lstat(in_dir(name), &st);
}

FAKE uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS;
}

/* Delivers a profile of a window that began then. */
FAKE int deliver(struct fake *f, uint32_t id, uint32_t stacks, uint64_t start_ns)
{
	struct builder *b;
	struct fusee_profile p = *fake_profile(&b, id, stacks, LABELS, NULL);
	int r;

	p.start_ns = start_ns;
	r = fake_consume(f, &p, 0);
	builder_free(b);
	return r;
}

FAKE struct fake *started(const char *keep, const char *max_size)
{
	return begun(fake_new(&fusee_plugin, "dir", dir, "keep", keep, "max_size", max_size, NULL));
}

/* With `dir` the test's folder, unless the option is that. */
FAKE void refused(const char *option, const char *value, int err, const char *sentence)
{
	bool is_dir = !strcmp(option, "dir");

	check_refused(is_dir ? fake_new(&fusee_plugin, option, value, NULL)
			     : fake_new(&fusee_plugin, "dir", dir, option, value, NULL),
		      err, sentence);
}

/* Each error that a disk has: the window is lost, is counted, and leaves no file. */
FAKE void check_disk_errors(int (*files)(void), int files_of_a_window)
{
	static const struct {
		int error;
		const char *counter;
	} all[] = {{EIO, "windows_lost{reason=\"i/o error\"}"},
		   {EDQUOT, "windows_lost{reason=\"quota\"}"},
		   {ENOSPC, "windows_lost{reason=\"no space\"}"},
		   {EAGAIN, "windows_lost{reason=\"other\"}"}};
	struct fake *f = started("7d", "1GiB");

	CHECK_INT(deliver(f, 1, 1, now()), 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		fsync_error = all[i].error;
		CHECK_INT(deliver(f, 2, 1, now()), all[i].error == EAGAIN ? -EIO : -all[i].error);
		CHECK_INT(fake_count(f, all[i].counter), 1);
		CHECK(strstr(f->error, "cannot write '"));
		CHECK(strstr(f->error, strerror(all[i].error)));
		CHECK_INT(files(), files_of_a_window);
	}
	fsync_error = 0;
	CHECK_INT(deliver(f, 2, 1, now()), 0);
	CHECK_INT(files(), 2 * files_of_a_window);
	fake_free(f);
}

/* The folder is a small file system, in a mount namespace of the test's own, until the test ends.
 */
FAKE void small_disk(const char *size)
{
	int flags = CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0);

	if (unshare(flags) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("fusee-test", dir, "tmpfs", 0, size))
		SKIP("mount namespaces are refused here");
}

/* Delivers windows until the disk is full. -> how many there is room for */
FAKE uint32_t fill(struct fake *f)
{
	uint32_t i = 0;
	int r;

	while (!(r = deliver(f, ++i, 50, now())))
		CHECK(i < 100);
	CHECK(i > 1);
	CHECK_INT(r, -ENOSPC);
	CHECK(strstr(f->error, strerror(ENOSPC)));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"no space\"}"), 1);
	return i - 1;
}
#endif
