/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* Windows of an hour become one file. At every moment each row is there once, whatever ends: the
 * process is killed before each of its system calls that change the folder. What `fusee query` and
 * DuckDB read of it is tested by tests/run/parquet-compact. */
#include <glob.h>
#include <sys/file.h>

#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/scratch.h"
#include "merge/numbers.h"
#include "parquet/files_folder.h"
#include "parquet/store.h"
#include "merge/input.h"
#include "rows.h"

#define NS 1000000000ull
#define HOUR (3600 * NS)
#define WINDOWS 6
#define STACKS_EACH 3
#define KILLED 9
#define deliver_old(n) deliver_ids(1, n)

extern const struct fusee_plugin fusee_plugin;

static int die_at;         /* so many system calls from now; 0: never */
static int exchange_error; /* of renameat2() */

/* ---- system calls ---- */

static void step(void)
{
	if (die_at && !--die_at)
		_exit(KILLED);
}

/* What the kernel has survives the process: no disk has to be waited for. */
int fsync(int fd)
{
	step();
	return 0;
}

int renameat(int from, const char *a, int to, const char *b)
{
	step();
	return (int)syscall(SYS_renameat2, from, a, to, b, 0);
}

int renameat2(int from, const char *a, int to, const char *b, unsigned int flags)
{
	step();
	errno = exchange_error;
	return exchange_error ? -1 : (int)syscall(SYS_renameat2, from, a, to, b, flags);
}

int linkat(int from, const char *a, int to, const char *b, int flags)
{
	step();
	return (int)syscall(SYS_linkat, from, a, to, b, flags);
}

int unlinkat(int at, const char *name, int flags)
{
	step();
	return (int)syscall(SYS_unlinkat, at, name, flags);
}

int mkdirat(int at, const char *name, mode_t mode)
{
	step();
	return (int)syscall(SYS_mkdirat, at, name, mode);
}

int usleep(useconds_t us)
{
	return us ? 0 : -1;
}

/* ---- help ---- */

/* An hour that ended more than an hour ago; the same until the test ends. */
static uint64_t old_hour(void)
{
	static uint64_t hour;

	return hour ? hour : (hour = ((uint64_t)time(NULL) / 3600 - 2) * HOUR);
}

static int deliver_stacks(struct fake *f, uint32_t id, uint64_t start_ns, uint32_t nstacks)
{
	struct builder *b;
	struct fusee_profile p = *fake_profile(&b, id, nstacks, "process", "web", "host", "h",
					       NULL);
	int r;

	p.start_ns = start_ns;
	r = fake_consume(f, &p, 0);
	builder_free(b);
	return r;
}

static int deliver(struct fake *f, uint32_t id, uint64_t start_ns)
{
	return deliver_stacks(f, id, start_ns, STACKS_EACH);
}

static struct fake *started(const char *compact, const char *keep)
{
	return begun(fake_new(&fusee_plugin, "dir", dir, "keep", keep, "max_size", "0", "compact",
			      compact, NULL));
}

static void deliver_ids(uint32_t id, uint32_t n)
{
	struct fake *f = started("0s", "0");

	for (uint32_t i = 0; i < n; i++)
		CHECK_INT(deliver(f, id + i, old_hour() + i * 10 * NS), 0);
	fake_free(f);
}

/* The window that is being delivered when the old hour is merged; it is of this hour. */
static void deliver_now(struct fake *f)
{
	static uint32_t id = 1000;

	CHECK_INT(deliver(f, id++, (uint64_t)time(NULL) * NS), 0);
}

static int names_like(const char *pattern)
{
	char path[256];
	glob_t g;
	int n;

	snprintf(path, sizeof(path), "%s/%s", dir, pattern);
	n = glob(path, 0, NULL, &g) ? 0 : (int)g.gl_pathc;
	globfree(&g);
	return n;
}

/* Of a table, in the old hour. */
static int files(const char *table)
{
	struct partition p;
	char pattern[128], name[64];
	time_t t = (time_t)(old_hour() / NS);

	strftime(name, sizeof(name), "%Y-%m-%dT%H-%M-%SZ", gmtime(&t));
	name_partition(name, &p);
	snprintf(pattern, sizeof(pattern), "%s/%s/%s/*", table, p.date, p.hour);
	return names_like(pattern);
}

/* Calls each() for all rows of a table of the old hour. */
static void rows_of(int table, void (*each)(const struct input *, uint64_t row))
{
	char pattern[128];
	struct input in;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "%s/%s/*/*/*", dir, folder_tables[table]);
	CHECK(!glob(pattern, 0, NULL, &g));
	for (size_t i = 0; i < g.gl_pathc; i++) {
		uint64_t ns;

		CHECK(name_is_ours(strrchr(g.gl_pathv[i], '/') + 1, &ns));
		if (ns - ns % HOUR != old_hour())
			continue;
		CHECK_INT(input_open(&in, AT_FDCWD, g.gl_pathv[i], table), 0);
		for (uint32_t k = 0; k < fusee_parquet_groups(in.file); k++) {
			CHECK_INT(input_load(&in, k, NULL, 0), 0);
			CHECK_INT(input_load_rest(&in, k), 0);
			for (uint64_t r = 0; r < fusee_parquet_group_rows(in.file, k); r++)
				each(&in, r);
		}
		input_close(&in);
	}
	globfree(&g);
}

static struct {
	int samples, windows[WINDOWS];
	int64_t ids[64];
	uint64_t texts[64]; /* of stacks, hashed */
	int nids, ntexts, found;
} seen;

static void see_sample(const struct input *in, uint64_t row)
{
	uint64_t ns = (uint64_t)input_number(in, rows_window[ROWS_TS], row) * 1000,
		 window = (ns - old_hour()) / (10 * NS);
	int i = 0;
	int64_t id = input_number(in, rows_sample_stack_id, row);
	const struct fusee_parquet_values *stack = in->values[rows_sample_stack];
	uint64_t text = numbers_of_text(NUMBERS_OF_NONE, stack->texts[stack->codes[row]]);

	seen.samples++;
	CHECK(window < WINDOWS);
	seen.windows[window]++;
	while (i < seen.nids && seen.ids[i] != id)
		i++;
	seen.ids[i] = id;
	seen.nids += i == seen.nids;
	for (i = 0; i < seen.ntexts && seen.texts[i] != text;)
		i++;
	seen.texts[i] = text;
	seen.ntexts += i == seen.ntexts;
}

static void see_stack(const struct input *in, uint64_t row)
{
	for (int i = 0; i < seen.nids; i++)
		if (seen.ids[i] == input_number(in, rows_stack_id, row)) {
			seen.ids[i] = seen.ids[--seen.nids];
			seen.found++;
			return;
		}
}

/* Every row once, and its stack. A merged file has numbers of its own. */
static void audit(int windows)
{
	int nids;

	memset(&seen, 0, sizeof(seen));
	rows_of(SAMPLES, see_sample);
	CHECK_INT(seen.samples, windows * STACKS_EACH);
	for (int i = 0; i < windows; i++)
		CHECK_INT(seen.windows[i], STACKS_EACH);
	nids = seen.nids;
	CHECK_INT(seen.ntexts, STACKS_EACH);
	CHECK(nids >= STACKS_EACH && nids % STACKS_EACH == 0);
	rows_of(STACKS, see_stack);
	CHECK_INT(seen.found, nids);
}

/* What an agent does: it merges, ends, and clears up at its next start. */
static void merge(void)
{
	struct fake *f = started("1s", "0");

	deliver_now(f);
	fake_free(f);
	fake_free(started("1s", "0"));
}

/* An agent that has just merged, if it could, that many windows. */
static struct fake *merging(uint32_t windows)
{
	struct fake *f;

	scratch();
	deliver_old(windows);
	f = started("1s", "0");
	deliver_now(f);
	return f;
}

static void check_merged(void)
{
	audit(WINDOWS);
	CHECK_INT(files("samples"), 1);
	CHECK_INT(files("stacks"), 1);
	CHECK_INT(names_like(".unfinished/[!l]*"), 0); /* but lock-UID */
}

/* ---- tests ---- */

TEST(an_hour_becomes_one_file)
{
	struct fake *f;

	scratch();
	deliver_old(WINDOWS);
	CHECK_INT(files("samples"), WINDOWS);
	f = started("0s", "0");
	deliver_now(f);
	CHECK_INT(files("samples"), WINDOWS);
	fake_free(f);
	f = started("24h", "0"); /* it is not old enough */
	deliver_now(f);
	CHECK_INT(files("samples"), WINDOWS);
	fake_free(f);
	f = started("1s", "0");
	deliver_now(f);
	CHECK_INT(fake_count(f, "windows_merged"), WINDOWS);
	CHECK_INT(files("samples"), 1);
	CHECK_INT(files("stacks"), WINDOWS + 1); /* for readers that have begun */
	audit(WINDOWS);
	deliver_now(f);
	CHECK_INT(fake_count(f, "windows_merged"), WINDOWS);
	fake_free(f);
	merge();
	check_merged();
}

TEST(kills_at_each_step)
{
	int died = 1, k;

	for (k = 1; died; k++) {
		int status;
		pid_t pid;

		CHECK(k < 500);
		scratch();
		deliver_old(WINDOWS);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			die_at = k;
			merge();
			_exit(0);
		}
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status));
		died = WEXITSTATUS(status) == KILLED;
		audit(WINDOWS);
		merge();
		check_merged();
	}
	CHECK(k > 30);
}

TEST(a_window_that_comes_again_is_there)
{
	struct fake *f = merging(WINDOWS);

	CHECK_INT(files("samples"), 1);
	CHECK_INT(deliver(f, 3, old_hour() + 20 * NS), 0);
	CHECK_INT(files("samples"), 1);
	fake_free(f);
	merge();
	check_merged();
}

/* A process that was stopped at a bad moment: the window is delivered again later. */
TEST(a_lock_that_is_not_given_back)
{
	struct fake *f;
	char name[96];
	int fd;

	scratch();
	deliver_old(1);
	f = started("1s", "0");
	snprintf(name, sizeof(name), "%s/.unfinished/lock-%u", dir, geteuid());
	fd = open(name, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && !flock(fd, LOCK_EX));
	CHECK_INT(deliver(f, 2, old_hour() + 10 * NS), -EAGAIN);
	CHECK_INT(files("samples"), 1);
	close(fd);
	CHECK_INT(deliver(f, 2, old_hour() + 10 * NS), 0);
	CHECK_INT(files("samples"), 2);
	fake_free(f);
	audit(2);
}

TEST(a_late_window_stays_beside)
{
	struct fake *f = merging(WINDOWS - 1);

	CHECK_INT(deliver(f, WINDOWS, old_hour() + (WINDOWS - 1) * 10 * NS), 0);
	CHECK_INT(files("samples"), 2);
	fake_free(f);
	merge();
	audit(WINDOWS);
	CHECK_INT(files("stacks"), 2);
}

TEST(late_windows_are_waited_for)
{
	struct fake *f;

	scratch();
	deliver_old(WINDOWS - 1);
	f = started("1s", "0");
	CHECK_INT(deliver(f, WINDOWS, old_hour() + (WINDOWS - 1) * 10 * NS), 0);
	CHECK_INT(files("samples"), WINDOWS);
	fake_free(f);
}

/* The last window's file of samples is changed by the command, where it is $f. */
static struct fake *merging_damaged(const char *command)
{
	struct fake *f;
	char all[128];

	scratch();
	deliver_old(WINDOWS + 1);
	snprintf(all, sizeof(all), "f=$(ls samples/*/*/* | tail -n 1); %s", command);
	shell(all);
	f = started("1s", "0");
	deliver_now(f);
	CHECK_INT(files("samples"), 2);
	CHECK_INT(fake_count(f, "windows_merged"), WINDOWS);
	return f;
}

TEST(a_damaged_window_stays_as_it_is)
{
	struct fake *f = merging_damaged("truncate -s -1 $f");

	CHECK_INT(fake_count(f, "compactions_failed{reason=\"other\"}"), 1);
	CHECK(fake_logged(f, "no Parquet file, or not complete"));
	fake_free(f);
	/* a page: it is found while others are merged already */
	fake_free(merging_damaged("printf X | dd of=$f bs=1 seek=20 conv=notrunc status=none"));
	fake_free(started("1s", "0"));
	CHECK_INT(files("stacks"), 2);
}

/* It would be an error of the merged file, of all its windows. */
TEST(a_window_without_its_stacks_stays_as_it_is)
{
	struct fake *f;

	scratch();
	deliver_old(WINDOWS);
	f = started("0s", "0");
	CHECK_INT(deliver_stacks(f, 500, old_hour() + WINDOWS * 10 * NS, STACKS_EACH + 3), 0);
	fake_free(f);
	shell("cp $(ls stacks/*/*/* | head -n 1) $(ls stacks/*/*/* | tail -n 1)");
	f = started("1s", "0");
	deliver_now(f);
	CHECK_INT(files("samples"), 2);
	CHECK_INT(fake_count(f, "windows_merged"), WINDOWS);
	CHECK(fake_logged(f, "it lacks stacks that its samples have"));
	fake_free(f);
}

TEST(what_is_not_ours_stays)
{
	struct fake *f;

	scratch();
	deliver_old(WINDOWS);
	shell("touch $(dirname $(ls samples/*/*/* | head -n 1))/notes.txt");
	f = started("1s", "0");
	deliver_now(f);
	CHECK_INT(files("samples"), WINDOWS + 1);
	CHECK_INT(fake_count(f, "compactions_failed{reason=\"other files\"}"), 1);
	fake_free(f);
	CHECK_INT(files("stacks"), WINDOWS);
	CHECK_INT(names_like(".unfinished/[!l]*"), 0); /* but lock-UID */
}

TEST(a_file_system_that_cannot_exchange)
{
	struct fake *f;

	scratch();
	deliver_old(WINDOWS);
	f = started("1s", "0");
	exchange_error = EINVAL;
	deliver_now(f);
	deliver_now(f);
	exchange_error = 0;
	CHECK_INT(files("samples"), WINDOWS);
	CHECK_INT(files("stacks"), WINDOWS);
	CHECK_INT(fake_count(f, "compactions_failed{reason=\"file system\"}"), 1);
	fake_free(f);
	audit(WINDOWS);
	CHECK_INT(names_like(".unfinished/[!l]*"), 0); /* but lock-UID */
}

TEST(a_merged_file_goes_with_its_last_window)
{
	char keep[32];

	scratch();
	deliver_old(WINDOWS);
	merge();
	check_merged();
	snprintf(keep, sizeof(keep), "%llus", (unsigned long long)time(NULL) - old_hour() / NS - 5);
	fake_free(started("1s", keep)); /* some of its windows are older */
	CHECK_INT(files("samples"), 1);
	fake_free(started("1s", "1h"));
	CHECK_INT(files("samples"), 0);
	CHECK_INT(files("stacks"), 0);
}

/* Another user's process, or one of an earlier version, does not know the lock. */
TEST(a_window_that_came_in_between_is_put_back)
{
	struct fake *f;

	scratch();
	deliver_old(WINDOWS);
	shell("mkdir ../$(basename $PWD).aside && f=$(ls samples/*/*/* | tail -n 1) && cp $f "
	      "../$(basename $PWD).aside/ && rm $f");
	f = started("1s", "0");
	deliver_now(f);
	fake_free(f);
	CHECK_INT(files("samples"), 1);
	shell("cp ../$(basename $PWD).aside/* .unfinished/old-*/ && rm -r ../$(basename "
	      "$PWD).aside");
	fake_free(started("1s", "0"));
	CHECK_INT(files("samples"), 2);
	CHECK_INT(files("stacks"), 2);
	audit(WINDOWS);
}

/* As they began at the same time, no reader could tell samples of one from those of another. */
TEST(windows_of_one_time_are_merged_into_different_files)
{
	scratch();
	deliver_ids(1, WINDOWS);
	deliver_ids(101, WINDOWS);
	merge();
	CHECK_INT(files("samples"), WINDOWS + 1);
	merge();
	CHECK_INT(files("samples"), 2);
	memset(&seen, 0, sizeof(seen));
	rows_of(SAMPLES, see_sample);
	CHECK_INT(seen.samples, 2 * WINDOWS * STACKS_EACH);
}

/* Retention removes the merged file before the windows that it replaced are removed. */
TEST(what_retention_removes_is_not_put_back)
{
	struct fake *f = merging(WINDOWS);

	fake_free(f);
	CHECK_INT(files("samples"), 1);
	shell("h=$(dirname $(ls samples/*/*/*.merged.parquet)) && rm -r $h stacks/${h#samples/}");
	fake_free(started("1s", "0"));
	CHECK_INT(files("samples"), 0);
}

/* ---- fusee query ---- */

static struct {
	int windows, starts[WINDOWS], samples, broken;
	int merge_at; /* window: before it is handed over, the hour is merged */
} read_so_far;

static int take_window(void *arg, const struct fusee_profile *p, const char *name)
{
	uint64_t window = (p->start_ns - old_hour()) / (10 * NS);

	if (p->start_ns - p->start_ns % HOUR != old_hour())
		return 0;
	CHECK(window < WINDOWS);
	read_so_far.starts[window]++;
	read_so_far.samples += (int)p->samples.n;
	if (++read_so_far.windows == read_so_far.merge_at)
		merge();
	return 0;
}

static void note_broken(void *arg, const char *name, const char *why)
{
	printf("# %s: %s\n", name, why);
	read_so_far.broken++;
}

static void read_store(int merge_at, struct store_counts *counts)
{
	struct store_request request = {.to_ns = UINT64_MAX};
	const struct store_reader reader = {.window = take_window, .broken = note_broken};
	struct files *files;
	struct store *store;
	char *error = NULL;

	memset(&read_so_far, 0, sizeof(read_so_far));
	memset(counts, 0, sizeof(*counts));
	read_so_far.merge_at = merge_at;
	CHECK_INT(selector_parse(&request.selector, "{}", &error), 0);
	CHECK_INT(files_folder_open(&files, dir), 0);
	CHECK_INT(parquet_open(&store, files), 0);
	CHECK_INT(store_read(store, &request, &reader, counts), 0);
	store_close(store);
	selector_free(request.selector);
	CHECK_INT(read_so_far.broken, 0);
	CHECK_INT(read_so_far.windows, WINDOWS);
	CHECK_INT(read_so_far.samples, WINDOWS * STACKS_EACH);
	for (int i = 0; i < WINDOWS; i++)
		CHECK_INT(read_so_far.starts[i], 1);
}

TEST(a_query_reads_windows_that_are_merged_meanwhile)
{
	struct store_counts counts;

	for (int at = 1; at <= WINDOWS; at++) {
		scratch();
		deliver_old(WINDOWS);
		read_store(at, &counts);
		CHECK_INT(counts.removed, 0);
		check_merged();
		read_store(0, &counts);
	}
}
