/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the API server and the credentials: from options, a kubeconfig, or the service
 * account of fusee's pod. */
#ifndef KUBERNETES_SERVER_H
#define KUBERNETES_SERVER_H

#include <stdbool.h>

#include <fusee/helpers.h>

/* Owned bytes, of certificates in a kubeconfig. */
struct blob {
	char *p; /* NULL: none */
	size_t n;
};

/* Owned texts; NULL: not set. */
struct server {
	char *url; /* without a '/' at its end; NULL: there is no server */
	char *ca_file, *cert_file, *key_file;
	struct blob ca, cert, key;
	char *token, *token_file, *user, *password;
	bool insecure;
	bool kubelet; /* a kubelet, not an API server */
};

struct server_options {
	const char *server, *kubelet, *ca_file, *token_file, *kubeconfig; /* "": not set */
	bool insecure; /* of kubelet: its certificate is not checked */
};

/* Fills *s, which is zeroed. Nothing is set and this is no pod: 0 and s->url is NULL. -errno after
 * host->fail(), or -ENOMEM. */
int server_find(struct server *s, const struct fusee_self *, const struct server_options *);
void server_fini(struct server *);
#endif
