/* SPDX-License-Identifier: Apache-2.0 */
/* discovery "kubernetes": namespace, pod, container and workload of the containers of this node. */
#include <ctype.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "follow.h"

struct kubernetes {
	struct fusee_self self;
	/* options, from here to insecure */
	const char *server, *kubelet, *ca_file, *token_file, *kubeconfig, *node;
	struct fusee_table labels, annotations;
	uint64_t silence, period;
	uint8_t insecure;

	struct server from;
	struct chosen *chosen;
	uint32_t nchosen;
	char name[POD_NAME];   /* of the node */
	struct follow *follow; /* NULL: this is no pod of a cluster */
};

/* Refuses a name that two labels of a target would have, because only the first would be
 * visible. */
static int check_name(struct kubernetes *k, uint32_t i)
{
	static const char *const own[] = {"namespace",      "pod",       "node",
					  "workload",       "container", "workload_kind",
					  "container_kind", "image",     "pid"};
	const struct chosen *c = &k->chosen[i];

	if (!*c->key)
		return fusee_fail(&k->self, -EINVAL,
				  "options 'labels' and 'annotations': a key is empty");
	for (size_t n = 0; n < sizeof(own) / sizeof(own[0]); n++)
		if (!strcmp(c->name, own[n]))
			return fusee_fail(&k->self, -EINVAL,
					  "options 'labels' and 'annotations': '%s' would become "
					  "'%s', which is a label of fusee's own",
					  c->key, c->name);
	for (uint32_t n = 0; n < i; n++)
		if (!strcmp(c->name, k->chosen[n].name))
			return fusee_fail(&k->self, -EINVAL,
					  "options 'labels' and 'annotations': '%s' and '%s' would "
					  "both become '%s'",
					  k->chosen[n].key, c->key, c->name);
	return 0;
}

static void add_chosen(struct kubernetes *k, struct fusee_table keys, bool annotation)
{
	FUSEE_FOR_EACH (struct fusee_str, key, keys) {
		struct chosen *c = &k->chosen[k->nchosen++];

		c->key = key->p;
		c->annotation = annotation;
		fusee_label_name(c->name, c->key);
	}
}

static int choose(struct kubernetes *k)
{
	int r = 0;

	if (k->labels.n + k->annotations.n > PODS_CHOSEN)
		return fusee_fail(&k->self, -EINVAL,
				  "options 'labels' and 'annotations': more than %u keys",
				  PODS_CHOSEN);
	k->chosen = calloc(k->labels.n + k->annotations.n + 1, sizeof(*k->chosen));
	if (!k->chosen)
		return -ENOMEM;
	add_chosen(k, k->labels, false);
	add_chosen(k, k->annotations, true);
	for (uint32_t i = 0; !r && i < k->nchosen; i++)
		r = check_name(k, i);
	return r;
}

/* The option, the environment that a DaemonSet sets, or the machine's name, which kubelets take
 * in lower case. */
static void find_node(struct kubernetes *k)
{
	const char *name = *k->node ? k->node : getenv("NODE_NAME");
	struct utsname u;

	if (name && *name) {
		snprintf(k->name, sizeof(k->name), "%s", name);
		return;
	}
	snprintf(k->name, sizeof(k->name), "%s", uname(&u) ? "" : u.nodename);
	for (char *c = k->name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct kubernetes *k = ctx;
	const struct server_options o = {.server = k->server,
					 .kubelet = k->kubelet,
					 .ca_file = k->ca_file,
					 .token_file = k->token_file,
					 .kubeconfig = k->kubeconfig,
					 .insecure = k->insecure};
	int r;

	fusee_self_init(ctx, in, host);
	r = choose(k);
	if (!r)
		r = server_find(&k->from, &k->self, &o);
	if (r || !k->from.url)
		return r;
	find_node(k);
	k->follow = follow_open(&(struct follow_options){.self = &k->self,
							 .server = &k->from,
							 .chosen = k->chosen,
							 .nchosen = k->nchosen,
							 .node = k->name,
							 .silence_ns = k->silence,
							 .period_ns = k->period});
	return k->follow ? 0 : -ENOMEM;
}

static void fini(void *ctx)
{
	struct kubernetes *k = ctx;

	follow_close(k->follow);
	server_fini(&k->from);
	free(k->chosen);
}

static int start(void *ctx)
{
	struct kubernetes *k = ctx;
	int r;

	if (k->follow)
		return follow_start(k->follow);
	fusee_log(&k->self, FUSEE_DEBUG,
		  "this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set), and none of "
		  "'server', 'kubelet' and 'kubeconfig' is set: there are no labels of pods");
	r = k->self.host->discovery->begin(k->self.in);
	return r ? r : k->self.host->discovery->commit(k->self.in);
}

static int ready(void *ctx, int fd, uint32_t events)
{
	struct kubernetes *k = ctx;

	return k->follow ? follow_ready(k->follow, fd, events) : 0;
}

static const struct fusee_option options[] = {
	FUSEE_OPTION_STRING(struct kubernetes, server, "",
			    "Address of the API server; empty: that of the pod's own cluster."),
	FUSEE_OPTION_STRING(struct kubernetes, kubelet, "",
			    "Address of this node's kubelet, whose list of pods is read each "
			    "'period', in place of a server."),
	FUSEE_OPTION_STRING(struct kubernetes, ca_file, "",
			    "Certificates (PEM) that vouch for the server's; empty: the service "
			    "account's in a pod, else the system's."),
	FUSEE_OPTION_STRING(struct kubernetes, token_file, "",
			    "File with a bearer token, read for each request; empty: the service "
			    "account's in a pod, else none."),
	FUSEE_OPTION_STRING(struct kubernetes, kubeconfig, "",
			    "Configuration of kubectl with server and credentials, in place of "
			    "server."),
	FUSEE_OPTION_STRING(struct kubernetes, node, "",
			    "Name of this node; empty: the environment's NODE_NAME, else the "
			    "machine's name."),
	FUSEE_OPTION_LIST(struct kubernetes, labels, "",
			  "Keys of labels of pods that become labels, with '_' for what a label's "
			  "name cannot have."),
	FUSEE_OPTION_LIST(struct kubernetes, annotations, "",
			  "Keys of annotations of pods that become labels, likewise."),
	FUSEE_OPTION_DURATION(struct kubernetes, silence, "90s", FUSEE_SECOND, FUSEE_HOUR,
			      "Longest time without a byte from the server, which sends one each "
			      "minute; then it is connected to anew."),
	FUSEE_OPTION_DURATION(struct kubernetes, period, "10s", FUSEE_SECOND, FUSEE_HOUR,
			      "Time between two lists of 'kubelet'."),
	FUSEE_OPTION_BOOL(struct kubernetes, insecure, "false",
			  "The certificate of 'kubelet' is not checked."),
};

static const struct fusee_discovery_ops ops = {.size = sizeof(ops), .start = start, .ready = ready};

FUSEE_PLUGIN(kubernetes, FUSEE_DISCOVERY, .version = "1.0",
	     .doc = "Labels containers with namespace, pod, container and workload of Kubernetes.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct kubernetes), .init = init,
	     .fini = fini, .ops = &ops);
