/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/credentials.h"
#include "base/log.h"
#include "base/metrics.h"
#include "plugin/internal/check.h"
#include "plugin/options.h"

/* ---- functions of the host ---- */

void plugin_host_log(struct fusee_instance *in, int level, const char *text)
{
	log_at(level, "%s: %s", in->name, text);
}

int plugin_host_fail(struct fusee_instance *in, int err, const char *text)
{
	free(in->error);
	in->error = strdup(text);
	if (in->error)
		credentials_hide_quoted(in->error);
	return err;
}

int plugin_misused(struct fusee_instance *in, enum plugin_misuse what)
{
	static const char *const sentences[] = {
		[PLUGIN_FILE_CLAIM_RANGE] = "file_claim: the range is empty: its lo must be below "
					    "its hi",
		[PLUGIN_FILE_CLAIM_FLAGS] = "file_claim: flags must be FUSEE_CLAIM_STEP, with "
					    "FUSEE_CLAIM_INTERPRETER, "
					    "FUSEE_CLAIM_REGISTERS and "
					    "FUSEE_CLAIM_READS_NOTHING or without",
		[PLUGIN_PROCESS_CLAIM_RANGE] = "process_claim: the range is empty: its lo must be "
					       "below its hi",
	};

	if (fusee_fails(what < sizeof(sentences) / sizeof(*sentences)))
		return -EINVAL;
	if (!(in->misused >> what & 1))
		plugin_host_log(in, LOG_WARNING, sentences[what]);
	in->misused |= 1u << what;
	return -EINVAL;
}

#define MAX_LABELS 8u

void plugin_host_count(struct fusee_instance *in, const char *metric,
		       const struct fusee_label *labels, uint32_t n, uint64_t add)
{
	char name[96], texts[MAX_LABELS * 2][128];
	const char *pairs[MAX_LABELS * 2 + 2] = {"instance", in->name};
	struct metric_labels all = {pairs, 2};

	for (uint32_t i = 0; i < n && i < MAX_LABELS; i++) {
		snprintf(texts[2 * i], sizeof(texts[0]), "%.*s", (int)labels[i].key.len,
			 labels[i].key.p);
		snprintf(texts[2 * i + 1], sizeof(texts[0]), "%.*s", (int)labels[i].str.len,
			 labels[i].str.p ? labels[i].str.p : "");
		pairs[all.n++] = texts[2 * i];
		pairs[all.n++] = texts[2 * i + 1];
	}
	snprintf(name, sizeof(name), "plugin_%s_total", metric);
	metric_add(name, "Counted by a plugin.", &all, add);
}

int plugin_host_read_secret(struct fusee_instance *in, const char *path, char *buf, uint32_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), r = fd < 0 ? -errno : 0;
	struct buf all = {0};
	struct stat st;

	/* before it is read, so that a write meanwhile counts as a change */
	secrets_note(&in->secrets, path, (fd < 0 ? stat(path, &st) : fstat(fd, &st)) ? NULL : &st);
	if (r)
		return r;
	r = buf_read_fd(&all, fd, cap ? cap - 1 : 0);
	while (!r && all.len && (all.p[all.len - 1] == '\n' || all.p[all.len - 1] == '\r'))
		all.len--;
	if (!r) {
		memcpy(buf, all.p ? all.p : "", all.len);
		buf[all.len] = '\0';
		r = (int)all.len;
	}
	if (all.p)
		explicit_bzero(all.p, all.cap);
	buf_fini(&all);
	close(fd);
	return r;
}

const struct fusee_host plugin_host_base = {
	.size = sizeof(plugin_host_base),
	.abi_minor = FUSEE_ABI_MINOR,
	.log = plugin_host_log,
	.fail = plugin_host_fail,
	.count = plugin_host_count,
	.read_secret = plugin_host_read_secret,
};

const char *plugin_kind_name(uint32_t kind)
{
	switch (kind) {
	case FUSEE_SINK:
		return "sink";
	case FUSEE_DISCOVERY:
		return "discover";
	case FUSEE_UNWINDER:
		return "unwind";
	case FUSEE_SAMPLER:
		return "sample";
	default:
		return NULL;
	}
}

/* ---- the default folder ---- */

static char *beside_or_installed(void)
{
	char exe[PATH_MAX], *dir = NULL;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	struct stat st;

	if (n > 0) {
		exe[n] = '\0';
		*strrchr(exe, '/') = '\0';
		if (asprintf(&dir, "%s/plugins", exe) < 0)
			return NULL;
		if (!stat(dir, &st) && S_ISDIR(st.st_mode))
			return dir;
		free(dir);
	}
	return strdup(FUSEE_LIBDIR "/fusee/plugins");
}

char *plugin_default_dir(void)
{
	const char *path = secure_getenv("FUSEE_PLUGIN_PATH");

	return path && *path ? strdup(path) : beside_or_installed();
}

/* ---- loading ---- */

static int refuse(char **text, const char *format, const char *path, const char *what)
{
	if (asprintf(text, format, path, what) < 0)
		*text = NULL;
	return -EPROTO;
}

/* The exported descriptor; NULL: none. *size: its size in the symbol table. */
static const struct fusee_plugin *find_descriptor(void *so, size_t *size)
{
	const struct fusee_plugin *d = dlsym(so, "fusee_plugin");
	const ElfW(Sym) *sym = NULL;
	Dl_info info;

	*size = d && dladdr1(d, &info, (void **)&sym, RTLD_DL_SYMENT) && sym ? sym->st_size : 0;
	return d;
}

/* The size up to the last field of an older version of the ABI that loads. A plugin
 * that was built with a later header of this version may have more fields than this core knows, and
 * is refused. */
#define LEAST(T, field) (offsetof(struct T, field) + sizeof(((struct T *)0)->field))
#define DESCRIPTOR_LEAST LEAST(fusee_plugin, ops)
#define UNWINDER_LEAST LEAST(fusee_unwinder_ops, detach)
#define SINK_LEAST LEAST(fusee_sink_ops, cancel)
#define DISCOVERY_LEAST LEAST(fusee_discovery_ops, process)
#define SAMPLER_LEAST LEAST(fusee_sampler_ops, check)

static bool is_size_of(uint32_t size, size_t least, size_t most)
{
	return size >= least && size <= most;
}

static bool has_secret(const struct fusee_plugin *d)
{
	for (uint32_t i = 0; i < d->options.n; i++)
		if (FUSEE_AT(struct fusee_option, d->options, i)->type == FUSEE_SECRET)
			return true;
	return false;
}

static const char *wrong_sampler(const struct fusee_plugin *d)
{
	const struct fusee_sampler_ops *ops = d->ops;

	if (!is_size_of(ops->size, SAMPLER_LEAST, sizeof(*ops)))
		return "has sampler ops of another size: rebuild it";
	if (!ops->type || !*ops->type || !ops->unit || !*ops->unit || !ops->amount)
		return "has no type, unit or amount of its values";
	if (!ops->bpf || !ops->bpf_end)
		return "has no BPF object";
	if (!(ops->flags & FUSEE_SAMPLER_TIME) == !ops->period || ops->period > UINT32_MAX)
		return "needs either FUSEE_SAMPLER_TIME or a period of 1 to 4294967295";
	return NULL;
}

static const char *wrong_ops(const struct fusee_plugin *d)
{
	const struct fusee_unwinder_ops *unwinder = d->ops;
	const struct fusee_sink_ops *sink = d->ops;
	const struct fusee_discovery_ops *discovery = d->ops;

	switch (d->kind) {
	case FUSEE_UNWINDER:
		if (!is_size_of(unwinder->size, UNWINDER_LEAST, sizeof(*unwinder)))
			return "has unwinder ops of another size: rebuild it";
		if (has_secret(d))
			return "has a secret option, which an unwinder cannot have";
		if (unwinder->native_step && !unwinder->reasons)
			return "has a step but no reasons";
		return NULL;
	case FUSEE_SINK:
		if (!is_size_of(sink->size, SINK_LEAST, sizeof(*sink)))
			return "has sink ops of another size: rebuild it";
		if (FUSEE_HAS(sink, read) && !sink->list != !sink->read)
			return "has one of list() and read(): both, or none";
		return sink->consume ? NULL : "has no consume()";
	case FUSEE_DISCOVERY:
		if (!is_size_of(discovery->size, DISCOVERY_LEAST, sizeof(*discovery)))
			return "has discovery ops of another size: rebuild it";
		if (discovery->flags & FUSEE_DISCOVERY_PROCESSES && !discovery->process)
			return "sets FUSEE_DISCOVERY_PROCESSES but has no process()";
		return NULL;
	case FUSEE_SAMPLER:
		return wrong_sampler(d);
	default:
		return "is of a kind that this fusee does not know";
	}
}

static int check_descriptor(const char *path, const struct fusee_plugin *d, size_t size,
			    char **text)
{
	char versions[160], *options;
	const char *wrong;
	int r;

	if (!d)
		return refuse(text, "plugin '%s' %s", path,
			      "exports no fusee_plugin: is it a fusee plugin?");
	if (size < offsetof(struct fusee_plugin, kind) || d->magic != FUSEE_MAGIC)
		return refuse(text, "plugin '%s' %s", path,
			      "has a wrong magic number: is it a fusee plugin?");
	if (!check_is_known(d->abi_major, d->abi_minor)) {
		snprintf(versions, sizeof(versions),
			 "was built for plugin ABI %u.%u, this fusee has %u.%u: rebuild it",
			 d->abi_major, d->abi_minor, FUSEE_ABI_MAJOR, FUSEE_ABI_MINOR);
		return refuse(text, "plugin '%s' %s", path, versions);
	}
	if (size < d->size || !is_size_of(d->size, DESCRIPTOR_LEAST, sizeof(*d)) || !d->name ||
	    !d->ops)
		return refuse(
			text, "plugin '%s' %s", path,
			"has a descriptor of another size or without name and ops: rebuild it");
	wrong = wrong_ops(d);
	if (wrong)
		return refuse(text, "plugin '%s' %s", path, wrong);
	r = options_check(&d->options, d->ctx_size, &options);
	if (r && options)
		r = refuse(text, "plugin '%s' %s", path, options);
	free(options);
	return r;
}

/* Whether an error of dlopen() is about memory. */
static bool is_no_memory(const char *error)
{
	return !error || strstr(error, strerror(ENOMEM)) || strstr(error, "out of memory");
}

int plugin_load(const char *path, struct plugin **ret, char **text)
{
	struct plugin *p = calloc(1, sizeof(*p));
	const char *error;
	size_t size;
	void *so;
	int r = -ENOMEM;

	*text = NULL;
	if (!p)
		return r;
	/* resolved once, so that the checked file is the loaded file even if a link changes */
	p->path = realpath(path, NULL);
	if (!p->path && errno != ENOMEM)
		p->path = strdup(path);
	if (!p->path)
		goto fail;
	path = p->path;
	r = check_file(path, text);
	if (r)
		goto fail;
	so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!so) {
		error = dlerror();
		r = is_no_memory(error)
			    ? -ENOMEM
			    : refuse(text, "plugin '%s' cannot be loaded: %s", path, error);
		goto fail;
	}
	p->descriptor = find_descriptor(so, &size);
	r = check_descriptor(path, p->descriptor, size, text);
	if (r)
		goto fail;
	*ret = p;
	return 0;
fail:
	plugin_free(p);
	return r;
}

void plugin_free(struct plugin *p)
{
	if (!p)
		return;
	free(p->path);
	free(p->name);
	free(p->refused);
	free(p);
}

struct plugin_stamp plugin_stamp(const struct fusee_plugin *d)
{
	struct plugin_stamp stamp = {0};
	struct stat st;
	Dl_info info;

	if (dladdr(d, &info) && !stat(info.dli_fname, &st))
		stamp = (struct plugin_stamp){.dev = st.st_dev,
					      .ino = st.st_ino,
					      .size = (uint64_t)st.st_size,
					      .mtime_ns = st.st_mtim.tv_sec * 1000000000ll +
							  st.st_mtim.tv_nsec};
	return stamp;
}
