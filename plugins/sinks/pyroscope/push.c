/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PushRequest { series = 1 { labels = 1 { name = 1, value = 2 }, samples = 2 { raw_profile = 1, ID
 * = 2 } } }.
 */
#include "push.h"

#include <fusee/proto.h>

static void put_label(struct fusee_bytes *b, struct fusee_str name, struct fusee_str value)
{
	uint64_t label = fusee_proto_begin(b, 1);

	fusee_proto_text(b, 1, name);
	fusee_proto_text(b, 2, value);
	fusee_proto_end(b, label);
}

int push_encode(const char *name, struct fusee_table labels, const struct fusee_profile *p,
		struct fusee_str pprof, struct fusee_bytes *to)
{
	const struct fusee_str metric = FUSEE_TEXT("__name__");
	uint64_t series = fusee_proto_begin(to, 1), sample;
	char id[FUSEE_UUID]; /* since servers may parse it */

	put_label(to, metric, fusee_text(name));
	FUSEE_FOR_EACH (struct fusee_label, l, labels) {
		put_label(to, l->key, l->str);
	}
	sample = fusee_proto_begin(to, 2);
	fusee_proto_text(to, 1, pprof);
	fusee_uuid(id, p->id);
	fusee_proto_text(to, 2, fusee_text(id));
	fusee_proto_end(to, sample);
	fusee_proto_end(to, series);
	return to->error;
}
