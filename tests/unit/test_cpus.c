/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/events
/* core/events/cpus: the kernel's lists of CPUs. */
#include "test.h"

#include <sys/ioctl.h>

#include <linux/perf_event.h>

#include "events/internal/cpu_watch.h"
#include "events/internal/cpus.h"

static void is(const char *list, const char *numbers)
{
	char got[256] = "";
	struct cpus c;

	cpus_parse(&c, list);
	for (int i = 0; i < CPUS_MAX; i++)
		if (cpus_has(&c, i))
			snprintf(got + strlen(got), sizeof(got) - strlen(got), " %d", i);
	CHECK_STR(got, numbers);
}

TEST(lists)
{
	is("0\n", " 0");
	is("0-3\n", " 0 1 2 3");
	is("0-1,6,62-65\n", " 0 1 6 62 63 64 65");
	is("8190-9000,8191", " 8190 8191");
	is("8192,5", " 5");
}

TEST(what_is_no_list)
{
	is("", "");
	is("\n", "");
	is("-1", "");
	is("x", "");
	is("2,x,3", " 2");
	is("2-x,3", "");
	is("3-1", "");
	is("99999999999999999999", "");
}

/* Where we run is online; and what is read once more is read from its beginning. */
TEST(online)
{
	struct cpus first, again;
	cpu_set_t here;
	int fd = cpus_open();

	CHECK(fd >= 0);
	cpus_read(&first, fd);
	cpus_parse(&again, "");
	cpus_read(&again, fd);
	close(fd);
	CHECK(!memcmp(&first, &again, sizeof(first)));
	CHECK(!sched_getaffinity(0, sizeof(here), &here));
	for (int i = 0; i < CPU_SETSIZE; i++)
		CHECK(!CPU_ISSET(i, &here) || cpus_has(&first, i));
}

TEST(not_to_be_read)
{
	struct cpus c;

	cpus_read(&c, -ENOENT);
	CHECK_INT(cpus_end(&c), sysconf(_SC_NPROCESSORS_CONF));
}

static int looks(struct cpu_watch *w)
{
	struct cpus online;

	cpus_parse(&online, "0");
	w->looked_ns = 1; /* long ago */
	cpu_watch_look(w, &online);
	return cpus_has(&online, 0);
}

/* An event that has ended with its CPU stands still, as if it were disabled. */
TEST(offline_between_two_looks)
{
	struct cpu_watch w = {0};
	struct cpus none;

	CHECK(looks(&w));
	if (w.cpus[0].fd < 0) {
		cpu_watch_close(&w);
		SKIP("no right to events of a CPU");
	}
	CHECK(looks(&w));
	CHECK(!ioctl(w.cpus[0].fd, PERF_EVENT_IOC_DISABLE, 0));
	looks(&w); /* some time since the last look, until it was disabled */
	CHECK(!looks(&w));
	CHECK_INT(w.cpus[0].fd, -1);
	CHECK(looks(&w));
	CHECK(w.cpus[0].fd >= 0);
	CHECK(looks(&w));
	cpus_parse(&none, "");
	w.looked_ns = 1;
	cpu_watch_look(&w, &none);
	CHECK_INT(w.cpus[0].fd, -1);
	cpu_watch_close(&w);
}

static void ends(const char *list, int end)
{
	struct cpus c;

	cpus_parse(&c, list);
	CHECK_INT(cpus_end(&c), end);
}

TEST(the_last_one)
{
	ends("", 0);
	ends("0", 1);
	ends("0-3,63", 64);
	ends("64", 65);
	ends("2,8191", 8192);
}
