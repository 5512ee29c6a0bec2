/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <fusee/http.h>
#include <stdlib.h>
#include <unistd.h>

#include "kubeconfig.h"

/* The files that the kubelet mounts into each pod. */
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

static void wipe_blob(struct blob *b)
{
	if (b->p)
		explicit_bzero(b->p, b->n);
	free(b->p);
	*b = (struct blob){0};
}

void server_fini(struct server *s)
{
	free(s->url);
	free(s->ca_file);
	free(s->cert_file);
	free(s->key_file);
	free(s->token_file);
	free(s->user);
	wipe(&s->token);
	wipe(&s->password);
	wipe_blob(&s->ca);
	wipe_blob(&s->cert);
	wipe_blob(&s->key);
	*s = (struct server){0};
}

static int copy(char **to, const char *from)
{
	if (!*from)
		return 0;
	free(*to);
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

/* ---- checks ---- */

static int check_url(struct server *s, const struct fusee_self *self)
{
	bool plain, secret = s->token || s->token_file || s->password;
	size_t n = strlen(s->url);
	uint32_t flags;

	while (n && s->url[n - 1] == '/')
		s->url[--n] = '\0';
	flags = fusee_http_url_flags(s->url);
	plain = flags & FUSEE_HTTP_URL_PLAIN;
	if (!flags)
		return fusee_fail(self, -EINVAL,
				  "the server '%s' is not an https:// or http:// address", s->url);
	if (flags & (FUSEE_HTTP_URL_USER | FUSEE_HTTP_URL_QUERY))
		return fusee_fail(self, -EINVAL,
				  "the server's address must have no user, '?' or '#'");
	if (plain && secret && !(flags & FUSEE_HTTP_URL_LOOPBACK))
		return fusee_fail(self, -EINVAL,
				  "the server '%s' is not https: everyone on the way could read "
				  "the token",
				  s->url);
	if (s->insecure && !plain)
		fusee_log(self, FUSEE_WARNING,
			  "insecure: the certificate of '%s' is not checked; who is between can be "
			  "it, and gets the token",
			  s->url);
	return 0;
}

static int check_file(const struct fusee_self *self, const char *path)
{
	if (path && access(path, R_OK))
		return fusee_fail(self, -errno, "cannot read '%s': %s", path, strerror(errno));
	return 0;
}

/* Files of the service account are read later, because a pod may get them a moment after its
 * start. */
static int check(struct server *s, const struct fusee_self *self, bool files)
{
	int r = check_url(s, self);

	if (!r && files)
		r = check_file(self, s->ca_file);
	if (!r && files)
		r = check_file(self, s->token_file);
	if (!r && files)
		r = check_file(self, s->cert_file);
	return r || !files ? r : check_file(self, s->key_file);
}

/* ---- finding the server ---- */

/* Only in a pod; without the environment there is no server. */
static int from_environment(struct server *s)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");
	bool v6 = host && strchr(host, ':');
	int r;

	if (!host || !*host)
		return 0;
	if (asprintf(&s->url, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
		     port && *port ? port : "443") < 0) {
		s->url = NULL;
		return -ENOMEM;
	}
	r = copy(&s->ca_file, ACCOUNT "ca.crt");
	return r ? r : copy(&s->token_file, ACCOUNT "token");
}

static int check_options(const struct fusee_self *self, const struct server_options *o)
{
	if (!!*o->server + !!*o->kubeconfig + !!*o->kubelet > 1)
		return fusee_fail(self, -EINVAL,
				  "'server', 'kubelet' and 'kubeconfig' exclude each other");
	if (o->insecure && !*o->kubelet)
		return fusee_fail(self, -EINVAL, "'insecure' is for 'kubelet' alone");
	if (o->insecure && *o->ca_file)
		return fusee_fail(self, -EINVAL, "'insecure' and 'ca_file' exclude each other");
	return 0;
}

static int find(struct server *s, const struct fusee_self *self, const struct server_options *o)
{
	if (*o->kubeconfig)
		return kubeconfig_read(s, self, o->kubeconfig);
	if (*o->server)
		return copy(&s->url, o->server);
	if (!*o->kubelet)
		return from_environment(s);
	s->kubelet = true;
	s->insecure = o->insecure;
	return copy(&s->url, o->kubelet);
}

int server_find(struct server *s, const struct fusee_self *self, const struct server_options *o)
{
	bool set = *o->server || *o->kubeconfig || *o->kubelet;
	int r = check_options(self, o);

	if (!r)
		r = find(s, self, o);
	if (!r)
		r = copy(&s->ca_file, o->ca_file);
	if (!r)
		r = copy(&s->token_file, o->token_file);
	if (!r && !s->url && (*o->ca_file || *o->token_file))
		return fusee_fail(self, -EINVAL,
				  "'ca_file' and 'token_file' need 'server': this is no pod of a "
				  "cluster (KUBERNETES_SERVICE_HOST is not set)");
	return r || !s->url ? r : check(s, self, set);
}
