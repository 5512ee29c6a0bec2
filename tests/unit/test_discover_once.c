/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/policy
/* core/policy/discover_once: discoveries run until each has committed, or for a time. */
#include "test.h"

#include "base/clock.h"
#include "base/str.h"
#include "policy/discover_once.h"
#include "target/labelset.h"

#define MS 1000000ull

static const struct fusee_host *host;
static struct fusee_instance *instance;

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *h)
{
	host = h;
	instance = in;
	return 0;
}

static int put(const char *key)
{
	const struct fusee_target t = {.size = sizeof(t),
				       .match = FUSEE_MATCH_CGROUP,
				       .key = fusee_text(key),
				       .cgroup = fusee_text(key)};

	return host->discovery->put(instance, &t);
}

static int start_complete(void *ctx)
{
	int r = host->discovery->begin(instance);

	r = r ? r : put("/a");
	return r ? r : host->discovery->commit(instance);
}

/* One of its servers has answered, another does not. */
static int start_partial(void *ctx)
{
	int r = host->discovery->begin(instance);

	return r ? r : put("/b");
}

static int start_silent(void *ctx)
{
	return host->discovery->begin(instance);
}

static int start_failing(void *ctx)
{
	return -EIO;
}

#define PLUGIN(begins)                                                                        \
	static const struct fusee_discovery_ops begins##_ops = {.size = sizeof(begins##_ops), \
								.start = start_##begins};     \
	static const struct fusee_plugin begins = {.magic = FUSEE_MAGIC,                      \
						   .abi_major = FUSEE_ABI_MAJOR,              \
						   .abi_minor = FUSEE_ABI_MINOR,              \
						   .size = sizeof(struct fusee_plugin),       \
						   .kind = FUSEE_DISCOVERY,                   \
						   .name = #begins,                           \
						   .init = init,                              \
						   .ops = &begins##_ops}

PLUGIN(complete);
PLUGIN(partial);
PLUGIN(silent);
PLUGIN(failing);

static void seen(void *arg, uint32_t source, const struct fusee_target *t)
{
	char *out = arg;

	snprintf(out + strlen(out), 64 - strlen(out), "%u%.*s ", source, (int)t->key.len, t->key.p);
}

/* "1/a ": source 1 has the target "/a". *failed, *ns: of the run. */
static const char *discover(const struct fusee_plugin *const *all, uint32_t n, uint32_t *failed,
			    uint64_t *ns)
{
	static char out[64];
	struct plan_instance instances[4] = {0}, *list[4];
	struct plan plan = {.discoveries = list, .ndiscoveries = n};
	struct discover_once *d = NULL;
	struct targets *targets;
	uint64_t began = clock_now();

	for (uint32_t i = 0; i < n; i++) {
		instances[i] = (struct plan_instance){.kind = FUSEE_DISCOVERY,
						      .descriptor = all[i],
						      .name = (char *)all[i]->name,
						      .where = ""};
		list[i] = &instances[i];
	}
	*out = '\0';
	CHECK_INT(targets_new(&targets), 0);
	CHECK_INT(discover_once_new(&d, &plan, targets, 200 * MS), 0);
	*ns = clock_now() - began;
	*failed = discover_once_failed(d);
	targets_each(targets, seen, out);
	discover_once_free(d);
	CHECK_INT(targets_count(targets), 0);
	targets_free(targets);
	return out;
}

#define DISCOVER(...)                                                                        \
	discover((const struct fusee_plugin *const[]){__VA_ARGS__},                          \
		 sizeof((const struct fusee_plugin *const[]){__VA_ARGS__}) / sizeof(void *), \
		 &failed, &ns)

TEST(it_ends_when_all_have_committed)
{
	uint32_t failed;
	uint64_t ns;

	CHECK_STR(DISCOVER(&complete), "1/a ");
	CHECK_INT(failed, 0);
	CHECK_STR(DISCOVER(&failing, &complete), "2/a ");
	CHECK_INT(failed, 1);
}

TEST(what_was_found_in_time_counts)
{
	uint32_t failed;
	uint64_t ns;
	const char *found = DISCOVER(&partial, &silent);

	CHECK_STR(found, "1/b ");
	CHECK_INT(failed, 2);
	CHECK(ns >= 200 * MS);
}
