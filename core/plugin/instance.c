/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/instance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/guess.h"

/* Begins a line with "fusee.lua:12: sink.pprof: ". */
static void begin_line(struct buf *b, const struct instance_options *o)
{
	buf_printf(b, "%s%s%s%s: ", b->len ? "\n" : "", o->where, *o->where ? ": " : "", o->name);
}

static void add_unknown(struct buf *b, const struct fusee_plugin *d, const char *name)
{
	struct guess g = {.word = name};

	options_offer(&d->options, &g);
	buf_printf(b, "unknown option '%s'" GUESS_HINT, name, GUESS_WORDS(g, ""));
}

static bool is_given(const struct instance_options *o, const char *name)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (!strcmp(o->options[i].name, name))
			return true;
	return false;
}

/* Sets the given options and checks that every required option is given. *errors: a line for each
 * mistake. */
static void set_all(void *ctx, const struct fusee_plugin *d, const struct instance_options *o,
		    struct buf *errors)
{
	for (uint32_t i = 0; i < o->n; i++) {
		const struct instance_option *at = &o->options[i];
		const struct fusee_option *option = options_find(&d->options, at->name);
		char *text = NULL;

		if (option && !options_set(ctx, option, &at->value, &text))
			continue;
		begin_line(errors, o);
		if (option)
			buf_str(errors, text ? text : strerror(ENOMEM));
		else
			add_unknown(errors, d, at->name);
		free(text);
	}
	for (uint32_t i = 0; i < d->options.n; i++) {
		const struct fusee_option *option = FUSEE_AT(struct fusee_option, d->options, i);

		if (option->def || is_given(o, option->name))
			continue;
		begin_line(errors, o);
		buf_printf(errors, "option '%s' must be given", option->name);
	}
}

/* Allocates ctx and sets its options. 0; -EINVAL with *text; -ENOMEM with *text or NULL. */
static int make_ctx(void **ctx, const struct fusee_plugin *d, const struct instance_options *o,
		    char **text)
{
	struct buf errors = {0};
	char *wrong = NULL;
	int r;

	*ctx = NULL;
	r = options_check(&d->options, d->ctx_size, text); /* as plugin_load() did */
	if (fusee_fails(!r))
		return r;
	*ctx = calloc(1, d->ctx_size ? d->ctx_size : 1);
	if (!*ctx)
		return -ENOMEM;
	r = options_defaults(*ctx, &d->options, &wrong);
	if (r) {
		begin_line(&errors, o);
		buf_str(&errors, wrong ? wrong : strerror(-r));
	} else {
		set_all(*ctx, d, o, &errors);
	}
	free(wrong);
	if (errors.len) {
		r = r ? r : -EINVAL;
		buf_add(&errors, "", 1);
		*text = errors.error ? NULL : strdup(errors.p);
	}
	if (errors.error)
		r = -ENOMEM;
	buf_fini(&errors);
	return r;
}

int instance_check(const struct fusee_plugin *d, const struct instance_options *o, char **text)
{
	void *ctx;
	int r = make_ctx(&ctx, d, o, text);

	if (ctx)
		options_clear(ctx, &d->options);
	free(ctx);
	return r;
}

int instance_new(struct fusee_instance **ret, const struct fusee_plugin *d,
		 const struct fusee_host *host, const struct instance_options *o, char **text)
{
	struct fusee_instance *in = calloc(1, sizeof(*in));
	int r = -ENOMEM;

	*text = NULL;
	if (!in)
		return r;
	secrets_init(&in->secrets);
	in->descriptor = d;
	in->owner = o->owner;
	in->name = strdup(o->name);
	in->where = strdup(o->where);
	in->given = option_text(o->options, o->n);
	if (!in->name || !in->where || !in->given)
		goto fail;
	r = make_ctx(&in->ctx, d, o, text);
	if (r)
		goto fail;
	in->begun = true;
	r = d->init ? d->init(in->ctx, in, host) : 0;
	if (r) {
		*text = instance_sentence(in, r);
		goto fail;
	}
	*ret = in;
	return 0;
fail:
	instance_free(in);
	return r;
}

void instance_free(struct fusee_instance *in)
{
	if (!in)
		return;
	if (in->begun && in->descriptor->fini)
		in->descriptor->fini(in->ctx);
	if (in->ctx)
		options_clear(in->ctx, &in->descriptor->options);
	free(in->ctx);
	free(in->name);
	free(in->where);
	free(in->given);
	free(in->error);
	secrets_fini(&in->secrets);
	free(in);
}

bool instance_secret_changed(struct fusee_instance *in)
{
	return secrets_changed(&in->secrets);
}

char *instance_sentence(struct fusee_instance *in, int err)
{
	char *text;
	int r = asprintf(&text, "%s%s%s: %s", in->where, *in->where ? ": " : "", in->name,
			 in->error ? in->error : strerror(-err));

	free(in->error);
	in->error = NULL;
	return r < 0 ? NULL : text;
}
