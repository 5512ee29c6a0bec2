/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>

#include "facts.h"

bool text_is_clean(struct fusee_str s)
{
	uint32_t point;

	while (s.len) {
		unsigned int n = fusee_character(s.p, s.len, &point);

		if (!n || !point)
			return false;
		s.p += n;
		s.len -= n;
	}
	return true;
}

int container_init(struct container *c, uint32_t nvalues)
{
	*c = (struct container){.nvalues = nvalues};
	c->values = calloc(nvalues + 1, sizeof(*c->values));
	return c->values ? 0 : -ENOMEM;
}

void container_fini(struct container *c)
{
	free(c->values);
	*c = (struct container){0};
}

void container_clear(struct container *c)
{
	struct container kept = {.values = c->values, .nvalues = c->nvalues};

	*c = kept;
	memset(c->values, 0, (c->nvalues + 1) * sizeof(*c->values));
}

/* The labels that kubelets set: pkg/kubelet/types/labels.go; those of dockershim, of containerd's
 * CRI plugin and of nerdctl beside them. */
void container_label(struct container *c, struct chosen_list chosen, struct fusee_str key,
		     struct fusee_str text)
{
	if (fusee_text_is(key, "io.kubernetes.container.name"))
		TEXT_SET(c->pod_container, text);
	else if (fusee_text_is(key, "io.kubernetes.pod.name"))
		TEXT_SET(c->pod, text);
	else if (fusee_text_is(key, "io.kubernetes.pod.namespace"))
		TEXT_SET(c->namespace, text);
	else if (fusee_text_is(key, "nerdctl/name"))
		TEXT_SET(c->name, text);
	else if (fusee_text_is(key, "io.cri-containerd.kind"))
		c->sandbox |= fusee_text_is(text, "sandbox");
	else if (fusee_text_is(key, "io.kubernetes.docker.type"))
		c->sandbox |= fusee_text_is(text, "podsandbox");
	for (uint32_t i = 0; i < chosen.n && i < c->nvalues; i++)
		if (fusee_text_is(key, chosen.at[i].key))
			TEXT_SET(c->values[i], text);
}

bool container_is_image_id(const char *text)
{
	size_t n;

	if (!strncmp(text, "sha256:", 7))
		text += 7;
	n = strspn(text, "0123456789abcdef");
	return n == 64 && !text[n];
}
