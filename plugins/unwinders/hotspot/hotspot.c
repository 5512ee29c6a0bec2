/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "hotspot": methods of Java in a JVM of OpenJDK. x86-64. */
#include <fusee/emitted.h>
#include <fusee/unwinder.bpf.h>

#include "heaps.h"
#include "inspect.h"
#include "lines.h"
#include "memory.h"
#include "names.h"
#include "threads.h"

int fusee_step_hotspot(struct fusee_unwind *u);
FUSEE_EMBED(hotspot_bpf, "hotspot.bpf.o");

struct hotspot {
	struct fusee_self self;
	void *processes; /* see names.h */
};

static int on_inspect(void *ctx, uint64_t file)
{
	struct hotspot *h = ctx;

	return hotspot_inspect(&h->self, file);
}

/* Copies the table if the mapping is of the library; then claims heaps of code that are new. */
static int on_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct hotspot *h = ctx;
	struct hotspot_jvm *jvm = hotspot_names_jvm(&h->processes, process);

	if (!jvm)
		return -ENOMEM;
	if (m->flags & FUSEE_VIEW_LIBRARY && FUSEE_HAS(m, table) &&
	    m->table.n == sizeof(jvm->table) / sizeof(jvm->table[0])) {
		hotspot_memory_free(jvm->memory);
		*jvm = (struct hotspot_jvm){.bias = m->bias, .known = true};
		memcpy(jvm->table, m->table.at, sizeof(jvm->table));
	}
	return hotspot_claim_heaps(&h->self, process, jvm);
}

/* A JVM may make further heaps of code after the library was mapped. */
static int on_refresh(void *ctx, uint64_t process)
{
	struct hotspot *h = ctx;
	struct hotspot_jvm *jvm = hotspot_names_jvm(&h->processes, process);

	return jvm ? hotspot_claim_heaps(&h->self, process, jvm) : -ENOMEM;
}

static int on_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct hotspot *h = ctx;
	int kept = hotspot_names_add(&h->processes, process, e->kind, e->key, e->bytes.p,
				     e->bytes.len);

	return fusee_emitted_result(&h->self, "methods_lost", kept);
}

/* Appends a frame of the method or stub. bci: HOTSPOT_NO_BCI if it is not known. 0 or -errno. */
static int show(struct hotspot *h, uint64_t process, const struct hotspot_named *named,
		uint32_t bci, struct fusee_frame_out *out)
{
	const struct hotspot_jvm *jvm = hotspot_names_jvm(&h->processes, process);
	struct fusee_source_frame f = FUSEE_SIZED(struct fusee_source_frame, .flags = named->flags);

	f.function = hotspot_name(named);
	f.system_name = hotspot_system_name(named);
	f.file = hotspot_file(named);
	if (jvm && named->line_bytes) {
		uint32_t line = hotspot_line(hotspot_lines(named), named->line_bytes,
					     jvm->words[HOTSPOT_EXCESS], bci, &f.start_line);

		f.line = bci == HOTSPOT_NO_BCI ? f.start_line : line;
	}
	return h->self.host->unwinder->frame(out, &f);
}

/* Appends a frame for each method that was inlined at a place in a compiled method, innermost
 * first. Returns the number of frames, or -ENOMEM. */
static int show_place(struct hotspot *h, const struct fusee_raw_frame *frame,
		      struct fusee_frame_out *out)
{
	const struct hotspot_place *place = hotspot_names_place(
		&h->processes, frame->process, fusee_mix(frame->v[0], frame->v[1]));

	for (uint32_t i = 0; place && i < place->n; i++) {
		const struct hotspot_named *named = hotspot_names_method(
			&h->processes, frame->process, place->scope[i].method);

		if (!named)
			return i ? (int)i : 0;
		if (show(h, frame->process, named, place->scope[i].bci, out))
			return -ENOMEM;
	}
	return place ? (int)place->n : 0;
}

static int show_work(const struct hotspot *h, uint64_t work, struct fusee_frame_out *out)
{
	struct fusee_source_frame f = FUSEE_SIZED(struct fusee_source_frame,
						  .flags = FUSEE_FRAME_BUILTIN);
	const char *name = hotspot_work_name(work);

	if (!name)
		return 0;
	f.function = f.system_name = fusee_text(name);
	return h->self.host->unwinder->frame(out, &f) ? -ENOMEM : 1;
}

static int show_thread(const struct hotspot *h, const struct fusee_raw_frame *frame,
		       struct fusee_frame_out *out)
{
	const char *name = hotspot_names_thread(&h->processes, frame->process, frame->v[0]);
	struct fusee_source_frame f = FUSEE_SIZED(struct fusee_source_frame);

	if (!name)
		return 0;
	f.function = fusee_text(name);
	return h->self.host->unwinder->frame(out, &f) ? -ENOMEM : 1;
}

static int on_symbolize(void *ctx, const struct fusee_raw_frame *frame, struct fusee_frame_out *out)
{
	struct hotspot *h = ctx;
	const struct hotspot_named *named;

	if (frame->addr) /* a frame of native code, which no step has named */
		return 0;
	if (frame->v[1] & HOTSPOT_IS_WORK)
		return show_work(h, frame->v[0], out);
	if (frame->v[1] & HOTSPOT_IS_THREAD)
		return show_thread(h, frame, out);
	if (frame->v[1] & HOTSPOT_IS_PLACE)
		return show_place(h, frame, out);
	named = frame->v[1] & HOTSPOT_IS_STUB
			? hotspot_names_stub(&h->processes, frame->process, frame->v[0])
			: hotspot_names_method(&h->processes, frame->process, frame->v[0]);
	if (!named)
		return 0;
	return show(h, frame->process, named, (uint32_t)frame->v[1], out) ? -ENOMEM : 1;
}

static uint64_t on_forget(void *ctx, uint64_t process, uint32_t what)
{
	struct hotspot *h = ctx;

	return hotspot_names_forget(&h->processes, process, what);
}

static void on_detach(void *ctx, uint64_t process)
{
	struct hotspot *h = ctx;

	hotspot_names_remove(&h->processes, process);
}

static void on_fini(void *ctx)
{
	struct hotspot *h = ctx;

	hotspot_names_free(&h->processes);
}

static const char *const reasons[] = HOTSPOT_REASONS;

/* Launchers load it when they run. Of 8 it is in a folder of the machine's name; its launcher may
 * be in the JDK's own folder. */
static const char *const files[] = {"libjvm.so", "../lib/server/libjvm.so",
				    "../lib/amd64/server/libjvm.so",
				    "../jre/lib/amd64/server/libjvm.so", NULL};
static const struct fusee_runtime runtimes[] = {
	FUSEE_SIZED(struct fusee_runtime, .name = "Java", .files = files, .major = 8),
};

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_LATE,
	.slab_version = 9,
	.frame_type = "jvm",
	.reasons = reasons,
	.bpf = hotspot_bpf,
	.bpf_end = hotspot_bpf_end,
	.native_step = fusee_step_hotspot,
	.inspect = on_inspect,
	.mapped = on_mapped,
	.refresh = on_refresh,
	.record = on_record,
	.symbolize = on_symbolize,
	.detach = on_detach,
	.runtimes = FUSEE_TABLE(runtimes),
	.forget = on_forget,
	.tested = "OpenJDK 8u504, 11.0.13, 17.0.9, 17.0.15, 21.0.8, 25.0.2, 26.0.2.1",
};

FUSEE_PLUGIN(hotspot, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Methods of Java that a JVM of OpenJDK runs.",
	     .ctx_size = sizeof(struct hotspot), .init = fusee_self_init, .fini = on_fini,
	     .ops = &ops);
