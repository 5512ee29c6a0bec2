// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/discovery/kubernetes/parse.c plugins/discovery/kubernetes/pod.c
// sources: plugins/discovery/kubernetes/pods.c plugins/discovery/kubernetes/kubeconfig.c
// sources: plugins/discovery/kubernetes/server.c plugins/lib/json/place.c plugins/lib/http/url.c plugins/lib/http/explain.c
// flags: -Iplugins/discovery/kubernetes
// libs: -lyajl -lyaml -lcurl
// clang-format on
// What an API server may send, in pieces of any length: pods whose texts are terminated, targets
// with labels that the core accepts. And any file as a kubeconfig.
#include "discovery.h"

#include "kubeconfig.h"
#include "parse.h"
#include "pods.h"

static int put(struct fusee_instance *in, const struct fusee_target *t)
{
	(void)in;
	if (t->match != FUSEE_MATCH_LABEL || !t->match_label.str.len || !t->key.len || !t->labels.n)
		return 0;
	check_labels(t, POD_VALUE);
	return 0;
}

static int each(void *arg, enum parse_event event, const struct pod *pod)
{
	if (strnlen(pod->name, sizeof(pod->name)) == sizeof(pod->name) ||
	    pod->ncontainers > POD_CONTAINERS)
		abort();
	if (event == PARSE_ITEM || event == PARSE_PUT)
		return pods_put(arg, pod, 1);
	if (event == PARSE_DELETE)
		pods_delete(arg, pod->uid, 2);
	return event == PARSE_ERROR;
}

static void answer(const uint8_t *data, size_t size)
{
	static struct chosen chosen[] = {{.key = "a"}, {.key = "b", .annotation = true}};
	struct pods *pods;
	struct parser *p;
	size_t step = size ? 1 + data[0] % 64 : 1;

	fusee_label_name(chosen[0].name, chosen[0].key);
	fusee_label_name(chosen[1].name, chosen[1].key);
	pods = pods_open(&self, chosen, 2);
	p = parser_new(chosen, 2, each, pods);
	if (!pods || !p || parser_begin(p))
		abort();
	for (size_t at = 1; at < size; at += step)
		if (parser_feed(p, (const char *)data + at, size - at < step ? size - at : step))
			break;
	if (strnlen(parser_answer(p)->message, 512) == 512)
		abort();
	pods_begin_list(pods);
	pods_end_list(pods, 3);
	if (pods_sweep(pods, 3 + PODS_KEEP) != UINT64_MAX || pods_count(pods))
		abort();
	parser_free(p);
	pods_close(pods);
}

static void configuration(const uint8_t *data, size_t size)
{
	struct server s = {0};
	char path[64];
	int fd = file_of(data, size);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!kubeconfig_read(&s, &self, path) && !s.url)
		abort();
	server_fini(&s);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	answer(data, size);
	configuration(data, size);
	return 0;
}
