/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a pod while its JSON is read, with fixed room for names, whose lengths Kubernetes
 * limits; longer texts are truncated. */
#ifndef KUBERNETES_POD_H
#define KUBERNETES_POD_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/helpers.h>

#define POD_NAME 256         /* bytes of a name with its NUL; RFC 1123 allows 253 */
#define POD_VALUE 264        /* of a label's value or an image; the core keeps 256 */
#define POD_CONTAINER_ID 136 /* runtimes have 64 hexadecimal digits */
#define POD_CONTAINERS 1024u /* of a pod; more are ignored */

enum container_kind { CONTAINER_MAIN, CONTAINER_INIT, CONTAINER_SIDECAR, CONTAINER_EPHEMERAL };

struct container {
	char name[64 + 1], image[POD_VALUE], id[POD_CONTAINER_ID]; /* "": not known */
	enum container_kind kind;
};

/* A label or annotation of pods that becomes a label of targets. */
struct chosen {
	const char *key;             /* borrowed */
	char name[FUSEE_LABEL_NAME]; /* the label's name, made of the key */
	bool annotation;
};

struct pod {
	char name[POD_NAME], namespace[POD_NAME], node[POD_NAME], uid[POD_NAME];
	char static_uid[POD_NAME];            /* of a static pod: the UID in its cgroups' paths */
	char version[POD_NAME];               /* resourceVersion */
	char owner[POD_NAME], owner_kind[64]; /* its controller; "": none */
	char template_hash[64];
	char (*values)[POD_VALUE]; /* of the chosen labels and annotations; "": it has none */
	uint32_t nvalues;
	struct container *containers;
	uint32_t ncontainers;
	uint64_t room;
};

int pod_init(struct pod *, uint32_t nvalues); /* 0 or -ENOMEM */
void pod_fini(struct pod *);
void pod_clear(struct pod *); /* for the next pod; keeps the memory */
/* The container of this name, added if there is none. NULL: no memory or too many. */
struct container *pod_container(struct pod *, const char *name);

/*
 * The workload of a pod by the name of its controller, without a request: a ReplicaSet whose name
 * ends with the pod's template hash is a Deployment's, a Job whose name ends with a time is a
 * CronJob's. true: *kind and name[POD_NAME] are set; false: the pod has no workload.
 */
bool pod_workload(const struct pod *, const char **kind, char *name);
#endif
