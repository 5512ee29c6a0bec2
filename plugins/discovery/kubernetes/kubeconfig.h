/* SPDX-License-Identifier: Apache-2.0 */
/* Reads kubectl's configuration file: the cluster and the user of its current context. */
#ifndef KUBERNETES_KUBECONFIG_H
#define KUBERNETES_KUBECONFIG_H

#include "server.h"

/* Fills *s. -errno after host->fail(), or -ENOMEM; *s is to be freed by server_fini() then too. */
int kubeconfig_read(struct server *s, const struct fusee_self *, const char *path);
#endif
