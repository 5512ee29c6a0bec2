/* SPDX-License-Identifier: Apache-2.0 */
// check: overlaps
/* Files by build ID: a program that is mapped, and how requests of other threads end. */
#include "agent/file_requests.h"

#include "base/clock.h"
#include "mapping_help.h"
#include "unwind/files.h"
#include "worker_help.h"

#define TEXT_OF(literal)                     \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static char path[128];

/* Maps the code of a new program, `options` for the compiler. */
static void *map_program(const char *name, const char *options, struct expected_mapping *to)
{
	char command[512];
	struct stat st;
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", scratch(), name);
	snprintf(command, sizeof(command),
		 "echo 'int main(void) { return 0; }' | ${CC:-cc} -Wl,--build-id=sha1 %s -o %s "
		 "-x c -",
		 options, path);
	CHECK(!system(command));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st));
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	to->name = name;
	CHECK_INT(procfs_each_mapping(getpid(), find_mapping, to), 1);
	to->m.name = to->copy;
	return p;
}

TEST(a_mapped_program_is_found)
{
	struct worker_options o = {0};
	struct plugin_set set = {0};
	struct expected_mapping named, bare;
	const struct inspection *i;
	struct stat st, found;
	struct worker *w;
	struct files *fs;
	uint8_t other[20] = {1};
	struct file *f, *stripped;
	int fd;

	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(files_new(&fs, w, &set), 0);
	map_program("stripped_program", "-s", &bare);
	stripped = files_of(fs, getpid(), &bare.m);
	map_program("named_program", "", &named);
	f = files_of(fs, getpid(), &named.m);
	CHECK_INT(worker_wait(w), 0);
	CHECK(f && f->state == FILE_READY && stripped && stripped->state == FILE_READY);
	i = f->inspection;
	CHECK_INT(i->build_id_len, 20);
	CHECK(!stat(path, &st));
	fd = file_requests_find(fs, i->build_id, 20, (uint64_t)st.st_size);
	CHECK(fd >= 0 && !fstat(fd, &found) && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(found.st_ino == st.st_ino && found.st_dev == st.st_dev && !f->uses);
	close(fd);
	CHECK_INT(file_requests_find(fs, i->build_id, 20, (uint64_t)st.st_size - 1), -EFBIG);
	CHECK_INT(file_requests_find(fs, i->build_id, 19, 1 << 20), -ENOENT);
	CHECK_INT(file_requests_find(fs, other, 20, 1 << 20), -ENOENT);
	CHECK_INT(file_requests_find(fs, stripped->inspection->build_id, 20, 1 << 20), -ENODATA);
	f->source.remote = true;
	CHECK_INT(file_requests_find(fs, i->build_id, 20, 1 << 20), -EREMOTE);
	f->source.remote = false;
	/* it is written to */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "x", 1, st.st_size - 1) == 1);
	close(fd);
	CHECK_INT(file_requests_find(fs, i->build_id, 20, 1 << 20), -ESTALE);
	worker_stop(w);
	files_free(fs);
	remove_scratch();
}

TEST(requests_end)
{
	static const struct fusee_str ids[] = {TEXT_OF(""), TEXT_OF("abc"), TEXT_OF("AB"),
					       TEXT_OF("0g")};
	const struct fusee_str id = TEXT_OF("0123ab");
	struct file_requests q;
	struct loop *loop;
	uint64_t begin;

	file_requests_init(&q);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		CHECK_INT(file_requests_open_file(&q, ids[i], 1), -EINVAL);
	CHECK_INT(file_requests_open_file(&q, id, 1), -EAGAIN); /* nothing serves it */
	CHECK_INT(loop_new(&loop), 0);
	file_requests_set(&q, loop, NULL);
	begin = clock_now();
	CHECK_INT(file_requests_open_file(&q, id, 1), -EAGAIN); /* the loop does not run */
	CHECK(clock_now() - begin >= FILE_REQUESTS_NS && !q.first);
	file_requests_close(&q);
	CHECK_INT(file_requests_open_file(&q, id, 1), -ECANCELED);
	file_requests_fini(&q);
	loop_free(loop);
}
