/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the container of a control group by the path, whose form depends on the runtime. */
#ifndef CGROUP_CONTAINER_H
#define CGROUP_CONTAINER_H

#include <stdbool.h>

struct container {
	char id[256];        /* 64 hex digits, another ID, or a name (systemd-nspawn, LXC) */
	const char *runtime; /* "docker", "containerd", "cri-o", "podman" ..; "" the path does not
				say */
};

#define POD_UID 37 /* 36 characters, or 32 for a static pod */

/* The innermost container of the path; false: none. */
bool container_of(const char *path, struct container *);
/* The UID of the Kubernetes pod of the path, by the kubelet's forms of paths; false: none. */
bool container_pod_uid(const char *path, char uid[POD_UID]);
#endif
