// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/discovery/container/reader.c plugins/discovery/container/reader_json.c
// sources: plugins/discovery/container/reader_grpc.c plugins/lib/proto/read.c
// sources: plugins/discovery/container/names.c plugins/discovery/container/facts.c
// sources: plugins/lib/json/place.c plugins/lib/json/member.c plugins/lib/http/explain.c
// flags: -Iplugins/discovery/container
// libs: -lyajl -lcurl
// clang-format on
// What daemons of containers may answer, in pieces of any length: containers whose texts are
// terminated, targets with labels that the core accepts.
#include "discovery.h"

#include "names.h"
#include "reader.h"

static int put(struct fusee_instance *in, const struct fusee_target *t)
{
	(void)in;
	if (t->match == FUSEE_MATCH_CGROUP ? *t->cgroup.p != '/' : !t->match_label.str.len)
		abort();
	check_labels(t, CONTAINER_VALUE);
	return 0;
}

static int each(void *arg, enum found found, const struct container *c)
{
	struct names_source from = {.daemon = 1, .list = 1, .runtime = "podman"};

	if (strnlen(c->id, sizeof(c->id)) == sizeof(c->id) ||
	    strnlen(c->cgroup, sizeof(c->cgroup)) == sizeof(c->cgroup))
		abort();
	if (found == FOUND_CONTAINER)
		return names_put(arg, &from, c);
	if (found == FOUND_ENDED)
		names_end(arg, 1, c->space, c->id, 2);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct chosen at[] = {{.key = "a"}, {.key = "team"}};
	const struct chosen_list chosen = {at, 2};
	struct names *names;
	struct reader *r;
	size_t step;
	int err = 0;

	if (size < 2)
		return 0;
	fusee_label_name(at[0].name, at[0].key);
	fusee_label_name(at[1].name, at[1].key);
	names = container_names_open(&self, chosen);
	r = reader_new(data[0] % 3, chosen, each, names);
	if (!names || !r || reader_begin(r, data[0] / 3 % 4, "default"))
		abort();
	step = 1 + data[1] % 64;
	for (size_t i = 2; !err && i < size; i += step)
		err = reader_feed(r, (const char *)data + i, size - i < step ? size - i : step);
	if (err == -EBADMSG && !reader_problem(r))
		abort();
	if (!err && reader_end(r) && !reader_problem(r))
		abort();
	if (strnlen(reader_message(r), 512) == 512)
		abort();
	names_end_list(names, 1, 2, 3);
	if (names_sweep(names, 3 + NAMES_KEEP) != UINT64_MAX || names_count(names))
		abort();
	reader_free(r);
	container_names_close(names);
	return 0;
}
