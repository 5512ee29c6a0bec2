/* SPDX-License-Identifier: Apache-2.0 */
#include "files/internal/file_quota.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/metrics.h"

#define MOST_OF_PROCESS 2048u
#define MOST_OF_USER 8192u
#define MOST_OF_ALL 12288u
#define KEPT_OF_USER 512u

static uint32_t smaller(uint32_t a, uint64_t b)
{
	return b < a ? (uint32_t)b : a;
}

void file_quota_init(struct file_quota *q)
{
	struct rlimit most = {.rlim_cur = 1024};

	*q = (struct file_quota){0};
	getrlimit(RLIMIT_NOFILE, &most);
	q->of_all = smaller(MOST_OF_ALL, most.rlim_cur / 4 * 3);
	q->of_user = smaller(MOST_OF_USER, most.rlim_cur / 2);
	q->of_process = smaller(MOST_OF_PROCESS, most.rlim_cur / 4);
	q->kept = smaller(KEPT_OF_USER, most.rlim_cur / 8);
}

void file_quota_fini(struct file_quota *q)
{
	hashmap_fini(&q->processes);
	hashmap_fini(&q->users);
}

static uint32_t count_of(const struct hashmap *m, uint64_t key)
{
	return (uint32_t)(uintptr_t)hashmap_get(m, key);
}

static int set_count(struct hashmap *m, uint64_t key, uint32_t n)
{
	if (n)
		return hashmap_put(m, key, (void *)(uintptr_t)n);
	hashmap_del(m, key);
	return 0;
}

int file_quota_add(struct file_quota *q, pid_t pid, uint32_t uid)
{
	uint32_t process = count_of(&q->processes, (uint64_t)pid), user = count_of(&q->users, uid);
	const char *whose = process >= q->of_process    ? "of the process"
			    : uid && user >= q->of_user ? "of the user"
			    : q->n >= q->of_all         ? "of all"
							: NULL;

	if (whose) {
		metric_add("files_over_limit_total",
			   "Total number of times that a mapped file was not kept open, as there "
			   "were too many.",
			   METRIC_LABELS("limit", whose), 1);
		return -EDQUOT;
	}
	if (set_count(&q->processes, (uint64_t)pid, process + 1))
		return -ENOMEM;
	if (set_count(&q->users, uid, user + 1)) {
		set_count(&q->processes, (uint64_t)pid, process); /* replaces: needs no memory */
		return -ENOMEM;
	}
	q->n++;
	return 0;
}

bool file_quota_is_many(const struct file_quota *q, uint32_t uid)
{
	return count_of(&q->users, uid) > q->kept;
}

void file_quota_remove(struct file_quota *q, pid_t pid, uint32_t uid)
{
	set_count(&q->processes, (uint64_t)pid, count_of(&q->processes, (uint64_t)pid) - 1);
	set_count(&q->users, uid, count_of(&q->users, uid) - 1);
	q->n--;
}
