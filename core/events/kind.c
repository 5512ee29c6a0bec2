/* SPDX-License-Identifier: Apache-2.0 */
#include "events/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guess.h"

#define CACHE(cache, op, result)                                                    \
	(PERF_COUNT_HW_CACHE_##cache | (uint64_t)PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 (uint64_t)PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* The periods give some hundred samples a second of a busy program. */
static const struct event_kind kinds[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 10000000, false, true, false, NULL,
	 false},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 10000000, false, true,
	 false, NULL, false},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 100000, false,
	 true, false, NULL, false},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 10000, false, true, false,
	 NULL, false},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 1000000, false, true,
	 false, NULL, false},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 10000, false, true,
	 false, NULL, false},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 10000000, false, true,
	 false, NULL, false},
	{"dTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), 10000, false, true, false,
	 NULL, false},
	{"LLC-load-misses", PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS), 10000, false, true, false,
	 NULL, false},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1, true, false,
	 false, NULL, false},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1, true, false, false,
	 NULL, false},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 10, false, false, false,
	 NULL, false},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 10, false, false, false,
	 NULL, false},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1, false, false, false,
	 NULL, false},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char event_kind_names[] =
	"alloc inuse cycles instructions cache-references cache-misses branches branch-misses "
	"ref-cycles "
	"dTLB-load-misses LLC-load-misses context-switches cpu-migrations page-faults minor-faults "
	"major-faults";

static int say(char **error, int r, const char *format, const char *a, const char *b)
{
	if (asprintf(error, format, a, b) < 0)
		*error = NULL;
	return r;
}

static bool is_word(const char *s, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-";

	return len && strspn(s, allowed) >= len;
}

/* "EVENTS/sched/sched_switch/id" in the first tracefs that is mounted. */
static int read_tracepoint(const char *name, size_t colon, uint64_t *id)
{
	static const char *const folders[] = {"/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events"};
	char path[256 + EVENT_NAME_MAX], text[32];
	int fd = -1, r = -ENODEV;
	ssize_t n;

	for (int i = 0; fd < 0 && i < 2; i++) {
		if (access(folders[i], F_OK)) {
			if (errno != ENOENT)
				r = -errno;
			continue;
		}
		snprintf(path, sizeof(path), "%s/%.*s/%s/id", folders[i], (int)colon, name,
			 name + colon + 1);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			break;
		return -errno;
	}
	if (fd < 0)
		return r;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	text[n] = '\0';
	*id = strtoull(text, NULL, 10);
	return 0;
}

static int find_tracepoint(const char *name, size_t colon, struct event_kind *ret, char **error)
{
	uint64_t id = 0;
	int r = read_tracepoint(name, colon, &id);

	switch (r) {
	case 0:
		*ret = (struct event_kind){
			.type = PERF_TYPE_TRACEPOINT, .config = id, .period = 1, .in_kernel = true};
		snprintf(ret->name, sizeof(ret->name), "%s", name);
		return 0;
	case -ENOENT:
		return say(error, -EINVAL,
			   "this kernel has no tracepoint '%s': ls /sys/kernel/tracing/events%s",
			   name, " lists them");
	case -ENODEV:
		return say(error, r,
			   "the number of the tracepoint '%s' is in tracefs, which is not mounted: "
			   "sudo mount -t tracefs tracefs %s",
			   name, "/sys/kernel/tracing");
	case -EACCES:
	case -EPERM:
		return say(error, r,
			   "the number of the tracepoint '%s' is in tracefs, which only root may "
			   "read%s",
			   name, ": run fusee with sudo");
	}
	return say(error, r, "cannot read the number of the tracepoint '%s': %s", name,
		   strerror(-r));
}

/* The guess keeps the word. */
static void offer_words(struct guess *g, const char *words, char last[EVENT_NAME_MAX])
{
	char word[EVENT_NAME_MAX];

	for (size_t n; *words; words += n + (words[n] == ' ')) {
		const char *best = g->best;

		n = strcspn(words, " ");
		snprintf(word, sizeof(word), "%.*s", (int)n, words);
		guess_offer(g, word);
		if (g->best == best)
			continue;
		snprintf(last, EVENT_NAME_MAX, "%s", word);
		g->best = last;
	}
}

int event_kind_find(const char *name, const char *more, struct event_kind *ret, char **error)
{
	size_t colon = strcspn(name, ":"), len = strlen(name);
	struct guess guess = {.word = name};
	char word[EVENT_NAME_MAX];

	offer_words(&guess, more, word);
	for (size_t i = 0; i < KINDS; i++) {
		if (!strcmp(name, kinds[i].name)) {
			*ret = kinds[i];
			return 0;
		}
		guess_offer(&guess, kinds[i].name);
	}
	if (len < EVENT_NAME_MAX && name[colon] && is_word(name, colon) &&
	    is_word(name + colon + 1, len - colon - 1))
		return find_tracepoint(name, colon, ret, error);
	if (guess.best)
		return say(error, -EINVAL, "there is no event '%s' (did you mean '%s'?)", name,
			   guess.best);
	if (asprintf(error,
		     "there is no event '%s': it is one of %s%s, or a tracepoint as "
		     "sched:sched_switch",
		     name, more, event_kind_names) < 0)
		*error = NULL;
	return -EINVAL;
}
