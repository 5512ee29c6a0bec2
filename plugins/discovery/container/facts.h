/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a container while an answer is read, with fixed room for texts. Longer texts are
 * truncated; longer IDs are ignored. */
#ifndef CONTAINER_FACTS_H
#define CONTAINER_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/helpers.h>

#define CONTAINER_ID 136    /* bytes with the NUL; runtimes have 64 hexadecimal digits */
#define CONTAINER_NAME 256  /* of a name */
#define CONTAINER_VALUE 264 /* of a label's value or an image; the core keeps 256 */
#define CONTAINER_PATH 1024 /* of a control group */

/* A label of containers that becomes a label of targets. */
struct chosen {
	const char *key;             /* borrowed */
	char name[FUSEE_LABEL_NAME]; /* the label's name, made of the key */
};

struct chosen_list {
	const struct chosen *at;
	uint32_t n;
};

struct container {
	char id[CONTAINER_ID];
	char space[CONTAINER_NAME]; /* containerd's namespace; "": of another daemon */
	char name[CONTAINER_NAME], image[CONTAINER_VALUE];
	char pod_container[CONTAINER_NAME], pod[CONTAINER_NAME],
		namespace[CONTAINER_NAME]; /* of the kubelet's labels; "": of no pod */
	char cgroup[CONTAINER_PATH];       /* "": not known */
	bool sandbox;                      /* the container that only holds a pod's namespaces */
	bool ended;
	char (*values)[CONTAINER_VALUE]; /* of the chosen labels; "": it has none */
	uint32_t nvalues;
};

int container_init(struct container *, uint32_t nvalues); /* 0 or -ENOMEM */
void container_fini(struct container *);
void container_clear(struct container *); /* for the next container; keeps the memory */
/* Takes a label of the container. The texts need not be terminated. */
void container_label(struct container *, struct chosen_list, struct fusee_str key,
		     struct fusee_str text);
/* Whether this text is an image's ID, not its name. */
bool container_is_image_id(const char *text);

/* Whether this is UTF-8 without a NUL. */
bool text_is_clean(struct fusee_str);
#define TEXT_SET(field, text) fusee_text_copy(field, sizeof(field), text)
#endif
