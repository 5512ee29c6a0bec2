/* SPDX-License-Identifier: Apache-2.0 */
/* Fields as k8s.io/client-go/tools/clientcmd/api/v1 documents them. */
#include "kubeconfig.h"

#include <stdlib.h>
#include <yaml.h>

#define MAX_FILE (1u << 20)

struct config {
	const struct fusee_self *self;
	const char *path;
	yaml_document_t document;
};

/* ---- nodes ---- */

/* NULL: the map has no such key. */
static yaml_node_t *member(struct config *c, yaml_node_t *map, const char *key)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		yaml_node_t *k = yaml_document_get_node(&c->document, p->key);

		if (k && k->type == YAML_SCALAR_NODE &&
		    !strcmp((const char *)k->data.scalar.value, key))
			return yaml_document_get_node(&c->document, p->value);
	}
	return NULL;
}

/* NULL: there is no such text, or it is empty. */
static const char *text(struct config *c, yaml_node_t *map, const char *key)
{
	yaml_node_t *n = member(c, map, key);

	return n && n->type == YAML_SCALAR_NODE && *n->data.scalar.value
		       ? (const char *)n->data.scalar.value
		       : NULL;
}

/* The `what` of the entry with this name in a list of {name, what}. NULL: there is none. */
static yaml_node_t *entry(struct config *c, const char *list, const char *name, const char *what)
{
	yaml_node_t *n = member(c, yaml_document_get_root_node(&c->document), list);

	if (!n || n->type != YAML_SEQUENCE_NODE || !name)
		return NULL;
	for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top;
	     i++) {
		yaml_node_t *e = yaml_document_get_node(&c->document, *i);
		const char *called = text(c, e, "name");

		if (called && !strcmp(called, name))
			return member(c, e, what);
	}
	return NULL;
}

static int copy(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

/* Paths are relative to the kubeconfig's folder. */
static int copy_path(struct config *c, char **to, const char *from)
{
	const char *slash = strrchr(c->path, '/');
	int r;

	if (!from || *from == '/' || !slash)
		return copy(to, from);
	r = asprintf(to, "%.*s/%s", (int)(slash - c->path), c->path, from);
	if (r < 0)
		*to = NULL;
	return r < 0 ? -ENOMEM : 0;
}

/* ---- certificates ---- */

static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes base64, which may have line breaks. -EINVAL: not base64; -ENOMEM. */
static int read_base64(struct blob *b, const char *from)
{
	uint32_t bits = 0, n = 0;

	b->n = 0;
	b->p = malloc(strlen(from) + 1);
	if (!b->p)
		return -ENOMEM;
	for (; *from && *from != '='; from++) {
		int d = digit(*from);

		if (strchr(" \t\r\n", *from))
			continue;
		if (d < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)d;
		n += 6;
		if (n >= 8) {
			n -= 8;
			b->p[b->n++] = (char)(bits >> n & 255);
		}
	}
	return from[strspn(from, "= \t\r\n")] || !b->n ? -EINVAL : 0;
}

/* KEY-data has precedence over KEY, a path. */
static int certificate(struct config *c, yaml_node_t *map, const char *key, struct blob *b,
		       char **file)
{
	char data[64];
	const char *given;
	int r;

	snprintf(data, sizeof(data), "%s-data", key);
	given = text(c, map, data);
	if (!given)
		return copy_path(c, file, text(c, map, key));
	r = read_base64(b, given);
	return r == -EINVAL ? fusee_fail(c->self, r, "'%s': '%s' is not base64", c->path, data) : r;
}

/* ---- cluster and user ---- */

/* Refuses fields that fusee does not support: without them the server would be another, or
 * unreachable. */
static int refuse(struct config *c, yaml_node_t *map, const char *kind, const char *name,
		  const char *const *keys)
{
	for (; *keys; keys++)
		if (member(c, map, *keys))
			return fusee_fail(c->self, -EINVAL,
					  "'%s': %s '%s' has '%s', which fusee does not support",
					  c->path, kind, name, *keys);
	return 0;
}

static int read_cluster(struct config *c, struct server *s, const char *name)
{
	static const char *const refused[] = {"tls-server-name", "proxy-url", NULL};
	yaml_node_t *cluster = entry(c, "clusters", name, "cluster");
	const char *insecure = text(c, cluster, "insecure-skip-tls-verify");
	int r;

	if (!cluster || !text(c, cluster, "server"))
		return fusee_fail(c->self, -EINVAL, "'%s' has no cluster '%s' with a 'server'",
				  c->path, name ? name : "");
	r = refuse(c, cluster, "cluster", name, refused);
	if (!r)
		r = copy(&s->url, text(c, cluster, "server"));
	if (!r)
		r = certificate(c, cluster, "certificate-authority", &s->ca, &s->ca_file);
	s->insecure = insecure && !strcmp(insecure, "true");
	return r;
}

/* Refuses users whose token comes from a program, which fusee would have to run with its rights. */
static int refuse_programs(struct config *c, yaml_node_t *user, const char *name)
{
	yaml_node_t *exec = member(c, user, "exec");
	const char *program = text(c, exec, "command");

	if (!exec && !member(c, user, "auth-provider"))
		return 0;
	return fusee_fail(c->self, -EINVAL,
			  "'%s': user '%s' gets its credentials from a program%s%s%s, which fusee "
			  "does not run: set 'server', 'ca_file' and 'token_file', with a token of "
			  "kubectl create token SERVICE-ACCOUNT --duration=24h, or use a client "
			  "certificate",
			  c->path, name, program ? " ('" : "", program ? program : "",
			  program ? "')" : "");
}

static int read_user(struct config *c, struct server *s, const char *name)
{
	static const char *const refused[] = {"as", "as-uid", "as-groups", NULL};
	yaml_node_t *user = entry(c, "users", name, "user");
	int r;

	if (!name)
		return 0; /* a server that requires none */
	if (!user)
		return fusee_fail(c->self, -EINVAL, "'%s' has no user '%s'", c->path, name);
	r = refuse_programs(c, user, name);
	if (!r)
		r = refuse(c, user, "user", name, refused);
	if (!r)
		r = certificate(c, user, "client-certificate", &s->cert, &s->cert_file);
	if (!r)
		r = certificate(c, user, "client-key", &s->key, &s->key_file);
	if (!r)
		r = copy_path(c, &s->token_file, text(c, user, "tokenFile"));
	if (!r && !s->token_file)
		r = copy(&s->token, text(c, user, "token"));
	if (!r)
		r = copy(&s->user, text(c, user, "username"));
	return r ? r : copy(&s->password, text(c, user, "password"));
}

static int read_context(struct config *c, struct server *s)
{
	yaml_node_t *root = yaml_document_get_root_node(&c->document);
	const char *current = text(c, root, "current-context");
	yaml_node_t *context = entry(c, "contexts", current, "context");
	int r;

	if (!current)
		return fusee_fail(c->self, -EINVAL,
				  "'%s' has no current-context: kubectl config use-context NAME "
				  "sets it",
				  c->path);
	if (!context)
		return fusee_fail(c->self, -EINVAL, "'%s' has no context '%s'", c->path, current);
	r = read_cluster(c, s, text(c, context, "cluster"));
	return r ? r : read_user(c, s, text(c, context, "user"));
}

/* ---- the file ---- */

static int load(struct config *c, FILE *f)
{
	yaml_parser_t parser;
	int r = 0;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_file(&parser, f);
	if (!yaml_parser_load(&parser, &c->document))
		r = parser.error == YAML_MEMORY_ERROR
			    ? -ENOMEM
			    : fusee_fail(c->self, -EINVAL, "'%s' is not YAML: line %zu: %s",
					 c->path, parser.problem_mark.line + 1,
					 parser.problem ? parser.problem : "cannot be read");
	yaml_parser_delete(&parser);
	return r;
}

int kubeconfig_read(struct server *s, const struct fusee_self *self, const char *path)
{
	struct config c = {.self = self, .path = path};
	FILE *f = fopen(path, "re");
	int r;

	if (!f)
		return fusee_fail(self, -errno, "option 'kubeconfig': cannot read '%s': %s", path,
				  strerror(errno));
	if (fseek(f, 0, SEEK_END) || ftell(f) > (long)MAX_FILE || ftell(f) < 0) {
		fclose(f);
		return fusee_fail(self, -EINVAL,
				  "option 'kubeconfig': '%s' is no file of at most 1 MiB", path);
	}
	rewind(f);
	r = load(&c, f);
	fclose(f);
	if (r)
		return r;
	r = read_context(&c, s);
	yaml_document_delete(&c.document);
	return r;
}
